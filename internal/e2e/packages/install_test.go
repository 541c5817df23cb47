package packages

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/tools"
)

func TestMain(m *testing.M) {
	tools.Short(`TestInstallHelp`) // others build the program in another way than tests do, from its first package on
	os.Exit(m.Run())
}

// run runs a script of scripts/ in a directory with these variables, and returns what it
// wrote to standard output.
func run(t *testing.T, directory, script string, variables []string, args ...string) string {
	t.Helper()
	// Go builds its library first for a machine that it has not built for.
	return tools.Command{Directory: directory, Env: variables, Patience: 10 * time.Minute}.Output(t, tools.Root("scripts", script), args...)
}

// files returns those below a directory, with their permissions.
func files(t *testing.T, directory string) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			found = append(found, fmt.Sprintf("%s %s", info.Mode(), strings.TrimPrefix(path, directory+"/")))
		}
		return err
	})
	expect.OK(t, err)
	return found
}

// installed returns the files that are installed below a prefix, whatever installs them, with
// their permissions.
func installed(prefix string) (all []string) {
	for _, file := range []string{
		"-rwxr-xr-x bin/sdtconvert",
		"-rw-r--r-- include/sdt.h",
		"-rw-r--r-- include/sdt_agent.h",
		"-rw-r--r-- include/sdt_forms.h",
		"-rw-r--r-- include/sdtconvert/freebsd/sys/sdt.h",
		"-rw-r--r-- include/sdtconvert/freebsd/sys/sdt_stubs.h",
		"-rw-r--r-- include/sdtconvert/rust/Cargo.toml",
		"-rw-r--r-- include/sdtconvert/rust/lib.rs",
		"-rw-r--r-- include/sdtconvert/rust/sdt.rs",
		"-rw-r--r-- include/sdtconvert/sdt.d",
		"-rw-r--r-- include/sdtconvert/sdt.zig",
		"-rw-r--r-- include/sdtconvert/usdt.h",
		"Lrwxrwxrwx libexec/sdtconvert/bin/dtrace",
		"Lrwxrwxrwx libexec/sdtconvert/ld",
		"Lrwxrwxrwx libexec/sdtconvert/ld.bfd",
		"Lrwxrwxrwx libexec/sdtconvert/ld.gold",
		"Lrwxrwxrwx libexec/sdtconvert/ld.lld",
		"Lrwxrwxrwx libexec/sdtconvert/ld.mold",
		"Lrwxrwxrwx libexec/sdtconvert/sdtconvert-cc",
		"-rw-r--r-- share/bash-completion/completions/sdtconvert",
		"-rw-r--r-- share/fish/vendor_completions.d/sdtconvert.fish",
	} {
		mode, path, _ := strings.Cut(file, " ")
		all = append(all, mode+" "+filepath.Join(prefix, path))
		if path == "libexec/sdtconvert/ld.lld" {
			for version := 11; version <= 40; version++ {
				all = append(all, fmt.Sprintf("%s-%d", all[len(all)-1-(version-11)], version))
			}
		}
	}
	return all
}

// declarations are the installed provider files of probes that systems ship.
func declarations(t *testing.T, prefix string) (all []string) {
	for _, path := range expect.Value(filepath.Glob(tools.Root("internal/provider/systems/*.d")))(t) {
		all = append(all, "-rw-r--r-- "+filepath.Join(prefix, "share/sdtconvert", filepath.Base(path)))
	}
	return all
}

// TestInstall installs to where DESTDIR and PREFIX say, whatever the directory that
// it is run in.
func TestInstall(t *testing.T) {
	tools.Need(t, "bash", "install")
	if runtime.GOOS != "linux" {
		tools.Unavailable(t, "the install command is another one here")
	}
	for _, c := range []struct{ name, destdir, prefix, want string }{
		{"both", "%s/a stage", "/opt/sdt convert", "a stage/opt/sdt convert"},
		{"DESTDIR", "%s/stage", "", "stage/usr/local"},
		{"relative", "stage", "/usr", "stage/usr"},
		{"PREFIX", "", "%s/prefix", "prefix"},
	} {
		t.Run(c.name, func(t *testing.T) {
			directory := t.TempDir()
			var variables []string
			for name, value := range map[string]string{"DESTDIR": c.destdir, "PREFIX": c.prefix} {
				variables = append(variables, name+"="+strings.Replace(value, "%s", directory, 1))
			}
			out := run(t, directory, "install", variables)
			want := append(installed(c.want), "-rw-r--r-- "+c.want+"/share/man/man1/sdtconvert.1", "-rw-r--r-- "+c.want+"/share/pkgconfig/sdtconvert.pc")
			want = append(append(want, declarations(t, c.want)...), "-rw-r--r-- "+c.want+"/share/zsh/site-functions/_sdtconvert")
			expect.Equal(t, want, files(t, directory), "to be installed (-) and installed (+)")
			for _, file := range want {
				_, path, _ := strings.Cut(file, " ")
				if !strings.Contains(out, "/"+path+" -> ") && !strings.Contains(out, "/"+path+"\n") {
					t.Errorf("%s is not among what was printed:\n%s", path, out)
				}
			}
			tools.Must(t, filepath.Join(directory, c.want, "bin/sdtconvert"), "help")
			complete(t, filepath.Join(directory, c.want))
			knowsItsLinkers(t, filepath.Join(directory, c.want))
			uninstall(t, directory, filepath.Join(directory, c.want), variables)
		})
	}
}

// completions have each shell complete "sdtconvert -j 2 li" and "sdtconvert --layout=r" with what is installed below $0.
var completions = map[string]string{
	"bash": `
		. "$0/share/bash-completion/completions/sdtconvert"
		compopt() { :; } # works for readline alone
		COMP_WORDS=(sdtconvert -j 2 li) COMP_CWORD=3; _sdtconvert; echo "${COMPREPLY[@]}"
		COMP_WORDS=(sdtconvert --layout = r) COMP_CWORD=3; _sdtconvert; echo "${COMPREPLY[@]}"`,
	"zsh": `
		_describe() { print -r -- "${${(P)@[$#]}%%:*}"; } # prints the words that zsh would show
		_files() { :; }
		compdef() { :; }
		. "$0/share/zsh/site-functions/_sdtconvert"
		words=(sdtconvert -j 2 li) CURRENT=4; _sdtconvert
		words=(sdtconvert --layout=r) CURRENT=2; _sdtconvert`,
	"fish": `
		source $argv[1]/share/fish/vendor_completions.d/sdtconvert.fish
		cd $argv[1]/share/fish # where no file begins so
		complete -C "sdtconvert -j 2 li" | string split -f1 \t
		complete -C "sdtconvert --layout=r" | string split -f1 \t; or true # nothing to split`,
}

func complete(t *testing.T, target string) {
	t.Helper()
	t.Setenv("PATH", filepath.Join(target, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"))
	for shell, script := range completions {
		tools.Need(t, shell)
		flag := "relative"
		if shell != "bash" { // which divides the word
			flag = "--layout=relative"
		}
		expect.Equal(t, "list\n"+flag+"\n", tools.Must(t, shell, "-c", script, target), "%s", shell)
	}
}

// uninstall removes what is installed, and nothing else.
func uninstall(t *testing.T, directory, target string, variables []string) {
	t.Helper()
	other := filepath.Join(target, "libexec/sdtconvert/other")
	disk.Write(t, other, "")
	run(t, directory, "install", variables, "--uninstall")
	if left := files(t, directory); len(left) != 1 || !strings.HasSuffix(left[0], "/other") {
		t.Errorf("not removed: %q", left)
	}
	expect.OK(t, os.Remove(other))
	expect.Equal(t, "", run(t, directory, "install", variables, "--uninstall"), "removed twice")
	disk.Absent(t, target)
}

// TestInstallHelp asks for help, and gives arguments that there are not.
func TestInstallHelp(t *testing.T) {
	tools.Need(t, "bash")
	directory := t.TempDir()
	variables := []string{"PREFIX=" + directory}
	out := run(t, directory, "install", variables, "--help")
	if !strings.HasPrefix(out, "Builds sdtconvert") || !strings.Contains(out, "--uninstall") || strings.Contains(out, "set -") {
		t.Errorf("help: %s", out)
	}
	if err := exec.Command("bash", tools.Root("scripts", "install"), "--all").Run(); err == nil {
		t.Error("an unknown argument is not an error")
	}
	if left := files(t, directory); len(left) > 0 {
		t.Errorf("installed: %q", left)
	}
}

// hardlyCompressed has dpkg-deb take no seconds for a program that is unpacked at once.
const hardlyCompressed = "DPKG_DEB_COMPRESSOR_LEVEL=0"

// TestDebianPackage builds the package twice, has lintian look at it, installs it
// into an empty system, uses it there, and removes it.
func TestDebianPackage(t *testing.T) {
	tools.Need(t, "dpkg-deb", "dpkg", "gzip", "lintian", "gcc")
	first, second := t.TempDir(), t.TempDir()
	deb := strings.TrimSpace(run(t, first, "debian-package", []string{hardlyCompressed}))
	run(t, "/", "debian-package", []string{hardlyCompressed, "TZ=Asia/Tokyo", "LC_ALL=C.UTF-8", "TMPDIR=" + second}, second)
	again := filepath.Join(second, filepath.Base(deb))
	if !same(t, deb, again) || filepath.Dir(deb) != first {
		t.Errorf("%s and %s are not the same", deb, again)
	}
	expect.Equal(t, "", tools.Must(t, "lintian", "--fail-on=warning,error", "--allow-root", deb), "lintian")

	root := t.TempDir()
	before := system(t, root)
	dpkg(t, root, "--install", deb)
	want := append(installed(""),
		"-rw-r--r-- share/doc/sdtconvert/changelog.gz",
		"-rw-r--r-- share/doc/sdtconvert/copyright",
		"-rw-r--r-- share/doc/sdtconvert/CHANGELOG.md",
		"Lrwxrwxrwx share/doc/sdtconvert/LICENSE",
		"Lrwxrwxrwx share/doc/sdtconvert/include/freebsd",
		"Lrwxrwxrwx share/doc/sdtconvert/include/sdt.h",
		"Lrwxrwxrwx share/doc/sdtconvert/include/sdt_agent.h",
		"Lrwxrwxrwx share/doc/sdtconvert/include/sdt_forms.h",
		"-rw-r--r-- share/lintian/overrides/sdtconvert",
		"-rw-r--r-- share/man/man1/sdtconvert.1.gz",
		"-rw-r--r-- share/pkgconfig/sdtconvert.pc",
		"-rw-r--r-- share/zsh/vendor-completions/_sdtconvert",
	)
	want = append(want, declarations(t, "")...)
	for _, document := range documents(t) {
		mode, path, _ := strings.Cut(document, " ")
		want = append(want, mode+" share/doc/sdtconvert/"+path)
	}
	got := files(t, root+"/usr")
	slices.SortFunc(want, byPath)
	slices.SortFunc(got, byPath)
	expect.Equal(t, want, got, "to be installed (-) and installed (+)")
	checkLinks(t, root+"/usr/share/doc/sdtconvert")
	dpkg(t, root, "--verify", "sdtconvert")
	use(t, root)
	dpkg(t, root, "--purge", "sdtconvert")
	expect.Equal(t, before, entries(t, root), "before the installation (-) and after the removal (+)")
}

// documents lists what scripts/documents copies.
func documents(t *testing.T) []string {
	t.Helper()
	directory := t.TempDir()
	tools.Must(t, tools.Root("scripts", "documents"), directory)
	return files(t, directory)
}

var link = regexp.MustCompile(`\]\(([^):#]+)(?:#[^)]*)?\)`)

// checkLinks looks for the files that the pages in a directory link to.
func checkLinks(t *testing.T, directory string) {
	t.Helper()
	pages := 0
	for _, file := range files(t, directory) {
		_, path, _ := strings.Cut(file, " ")
		if filepath.Ext(path) != ".md" {
			continue
		}
		pages++
		for _, m := range link.FindAllSubmatch(disk.Read(t, filepath.Join(directory, path)), -1) {
			if _, err := os.Stat(filepath.Join(directory, filepath.Dir(path), string(m[1]))); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
	if pages < 20 {
		t.Errorf("%s has %d pages", directory, pages)
	}
}

// TestForeignPackage builds for another machine.
func TestForeignPackage(t *testing.T) {
	tools.Need(t, "dpkg-deb", "readelf")
	machines := map[string]string{"i386": "Intel 80386", "armhf": "ARM"}
	for _, arch := range product.Some(t.Name(), []string{"i386", "armhf"}, 1) {
		machine, directory := machines[arch], t.TempDir()
		deb := strings.TrimSpace(run(t, directory, "debian-package", []string{hardlyCompressed, "ARCH=" + arch, "VERSION=1.2"}))
		expect.Equal(t, directory+"/sdtconvert_1.2_"+arch+".deb", deb, "the package")
		tools.Must(t, "dpkg-deb", "--extract", deb, directory)
		if out := tools.Must(t, "readelf", "-h", directory+"/usr/bin/sdtconvert"); !strings.Contains(out, machine) {
			t.Errorf("the program of %s is for another machine:\n%s", arch, out)
		}
	}
}

// byPath compares lines of files by what follows the permissions.
func byPath(a, b string) int {
	return strings.Compare(a[strings.Index(a, " "):], b[strings.Index(b, " "):])
}

func same(t *testing.T, a, b string) bool {
	t.Helper()
	first := disk.Read(t, a)
	return bytes.Equal(first, disk.Read(t, b))
}

// system makes the files that dpkg wants of a system, and lists its directories.
func system(t *testing.T, root string) []string {
	t.Helper()
	for _, directory := range []string{"info", "updates", "triggers"} {
		expect.OK(t, os.MkdirAll(filepath.Join(root, "var/lib/dpkg", directory), 0o777))
	}
	disk.Write(t, filepath.Join(root, "var/lib/dpkg/status"), "")
	return entries(t, root)
}

// entries returns a system's files and directories, but for dpkg's own.
func entries(t *testing.T, root string) []string {
	t.Helper()
	var names []string
	for _, e := range expect.Value(os.ReadDir(root))(t) {
		names = append(names, e.Name())
	}
	return names
}

// dpkg works on a system of its own, as root or as what looks like it.
func dpkg(t *testing.T, root string, args ...string) {
	t.Helper()
	command := append([]string{"dpkg", "--root=" + root, "--force-script-chrootless", "--log=/dev/null"}, args...)
	if os.Getuid() != 0 {
		command = append([]string{"unshare", "--map-root-user"}, command...)
	}
	// Its own tools may be in /sbin.
	if !slices.Contains(filepath.SplitList(os.Getenv("PATH")), "/sbin") {
		t.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin")
	}
	expect.Lacks(t, tools.Must(t, command[0], command[1:]...), "warning", "dpkg %q", args)
}

// use converts what is compiled with the installed header, by the installed program. Root
// runs it where nothing else is.
func use(t *testing.T, root string) {
	t.Helper()
	source := filepath.Join(root, "probe.c")
	text := "#include <sdt.h>\nSDT_PROVIDER_DEFINE(p);\nSDT_PROBE_DEFINE(p, , , q);\nint main(void) { SDT_PROBE0(p, , , q); return 0; }\n"
	disk.Write(t, source, text)
	object := filepath.Join(root, "probe.o")
	tools.Must(t, "gcc", "-nostdinc", "-isystem", root+"/usr/include", "-c", "-o", object, source)
	command := []string{root + "/usr/bin/sdtconvert", "-v", object}
	if os.Getuid() == 0 && runtime.GOOS == "linux" {
		command = []string{"chroot", root, "/usr/bin/sdtconvert", "-v", "/probe.o"}
	}
	expect.Contains(t, tools.Must(t, command[0], command[1:]...), "main+", "nothing is converted")
	tools.Must(t, "gcc", "-o", root+"/probe", object)
	tools.Must(t, root+"/probe")
	for _, made := range []string{source, object, root + "/probe"} {
		expect.OK(t, os.Remove(made))
	}
}

// TestRelease makes the files of a release in two clones, compares them, and runs the program that
// is in one of them.
func TestRelease(t *testing.T) {
	tools.Need(t, "git", "tar", "gzip", "dpkg-deb", "sha256sum")
	if _, err := os.Stat(tools.Root(".git")); err != nil {
		t.Skip("the source is not a clone")
	}
	targets := runtime.GOOS + "/" + runtime.GOARCH
	var out []string
	for _, name := range []string{"a", "another"} {
		clone := filepath.Join(t.TempDir(), name)
		tools.Must(t, "git", "clone", "-q", tools.Root(), clone)
		out = append(out, t.TempDir())
		release := tools.Command{Directory: "/", Env: []string{"TARGETS=" + targets, hardlyCompressed}, Patience: 10 * time.Minute}
		release.Must(t, filepath.Join(clone, "scripts", "release"), out[len(out)-1])
	}
	sums := string(disk.Read(t, filepath.Join(out[0], "SHA256SUMS")))
	expect.Equal(t, sums, string(disk.Read(t, filepath.Join(out[1], "SHA256SUMS"))), "the second release")
	expect.Equal(t, 4, strings.Count(sums, "\n"), "files of the release")
	tools.Command{Directory: out[0]}.Must(t, "sha256sum", "--check", "SHA256SUMS")
	programs := expect.Value(filepath.Glob(filepath.Join(out[0], "sdtconvert-*-"+runtime.GOOS+"-*.tar.gz")))(t)
	tools.Must(t, "tar", "-C", out[0], "-xf", programs[0])
	directory := strings.TrimSuffix(programs[0], ".tar.gz")
	checkLinks(t, directory)
	program := filepath.Join(directory, "bin", "sdtconvert")
	commit := strings.TrimSpace(tools.Command{Directory: tools.Root()}.Must(t, "git", "rev-parse", "HEAD"))
	expect.Contains(t, tools.Must(t, program, "--version"), "("+commit+")", "the version")
}

// knowsItsLinkers checks that the installed program names its own linkers, to a user whose program is not converted.
func knowsItsLinkers(t *testing.T, prefix string) {
	t.Helper()
	tools.Need(t, "gcc")
	program := filepath.Join(t.TempDir(), "program")
	source := tools.Command{Stdin: "#include <sdt.h>\nint main(void) { DTRACE_PROBE(shop___placed); return 0; }\n"}
	source.Must(t, "gcc", "-I", filepath.Join(prefix, "include"), "-o", program, "-x", "c", "-")
	flag := "-B" + filepath.Join(prefix, "libexec/sdtconvert")
	tools.Refuses(t, "link with "+flag+", or convert the objects", filepath.Join(prefix, "bin/sdtconvert"), "list", program)
	source.Must(t, "gcc", flag, "-I", filepath.Join(prefix, "include"), "-o", program, "-x", "c", "-")
	expect.Contains(t, tools.Must(t, filepath.Join(prefix, "bin/sdtconvert"), "list", program), "main placed")
}
