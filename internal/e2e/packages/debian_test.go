package packages

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/tools"
)

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
		"Lrwxrwxrwx share/doc/sdtconvert/include/sdt_forms.h",
		"-rw-r--r-- share/lintian/overrides/sdtconvert",
		"-rw-r--r-- share/man/man1/sdtconvert.1.gz",
		"-rw-r--r-- share/zsh/vendor-completions/_sdtconvert",
	)
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
