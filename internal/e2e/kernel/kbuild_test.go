package kernel

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestKbuild builds the modules of testdata, of one file and of several, with the
// makefile that docs/kernel.md shows, in a kernel's tree with MODVERSIONS, BTF and
// signing, and without the line that converts them; and compares the two. Then it
// builds the module of the page.
func TestKbuild(t *testing.T) {
	tools.Need(t, "apt-get")
	tools.Need(t, "make", toolchains.NamedGCC.Name, "pahole", "openssl", "xz", "modprobe", "readelf", "objcopy")
	tree, variables := newTree(t, "")
	t.Setenv("PATH", filepath.Dir(build(t))+":"+os.Getenv("PATH"))
	makefile := documented(t)
	with := modules{t.TempDir(), tree, variables}
	with.write(t, makefile)
	twin := modules{t.TempDir(), tree, variables}
	twin.write(t, strings.Replace(makefile, "\n$(addprefix ", "\n# $(addprefix ", 1))

	out := with.must(t, "modules")
	expect.Equal(t, "", regexp.MustCompile(`(?im)^.*(warning|error|skip).*$`).FindString(out), "the build says")
	if out = twin.must(t, "modules", "KBUILD_MODPOST_WARN=1"); !strings.Contains(out, `"__dtrace_probe_post___price" [`) {
		t.Errorf("modpost finds no stub in modules that are not converted:\n%s", out)
	}
	for _, module := range []string{"post", "sender"} {
		t.Run(module, func(t *testing.T) {
			checkSites(t, with.path(module+".ko"), twin.path(module+".ko"))
			checkVersions(t, with.path(module+".ko"), twin.path(module+".ko"))
			checkTypes(t, with.path(module+".ko"), twin.path(module+".ko"), tree)
		})
	}
	got, want := with.read(t, "Module.symvers"), twin.read(t, "Module.symvers")
	if got != strings.ReplaceAll(want, twin.directory, with.directory) || !strings.Contains(got, "parcel_price") {
		t.Errorf("checksums of exported symbols: %s, and unconverted %s", got, want)
	}
	t.Run("incremental", with.checkIncremental)
	t.Run("sign", with.checkSigned)
	t.Run("failure", with.checkFailure)
	t.Run("page", func(t *testing.T) { checkPage(t, tree, variables) })
}

// pageBlock returns the block of docs/kernel.md that begins with a text.
func pageBlock(t *testing.T, first string) string {
	t.Helper()
	_, text, ok := strings.Cut(string(disk.Read(t, "../../../docs/kernel.md")), "\n"+first)
	text, _, closed := strings.Cut(text, "```")
	if !ok || !closed {
		t.Fatalf("docs/kernel.md has no block that begins with %q", first)
	}
	return first + text
}

// checkPage runs the commands of docs/kernel.md with the module that it shows, and then those
// that put symbols around the records.
func checkPage(t *testing.T, tree string, variables []string) {
	directory := t.TempDir()
	disk.Write(t, filepath.Join(directory, "parcel.c"), pageBlock(t, "/* parcel.c */"))
	disk.Write(t, filepath.Join(directory, "Kbuild"), pageBlock(t, "# Kbuild"))
	disk.Write(t, filepath.Join(directory, "sdt.lds"), string(disk.Read(t, "../../../examples/linux-module/sdt.lds")))
	here := strings.NewReplacer("/usr/include/sdt.h", "'"+tools.Root("include", "sdt.h")+"'", "/lib/modules/$(uname -r)/build", tree, "M=$PWD", "M=$PWD "+strings.Join(variables, " "))
	session := here.Replace(pageBlock(t, "$ cp "))
	commands := regexp.MustCompile(`(?m)^\$ (.*)$`).FindAllStringSubmatch(session, -1)
	if len(commands) != 3 {
		t.Fatalf("%d commands: %s", len(commands), session)
	}
	in := tools.Command{Directory: directory}
	var out string
	for _, command := range commands {
		out = in.Must(t, "sh", "-ec", command[1])
	}
	if printed := session[strings.LastIndex(session, commands[2][1])+len(commands[2][1]):]; strings.TrimSpace(out) != strings.TrimSpace(printed) {
		t.Errorf("the last command prints %q", out)
	}
	checkDistributed(t, in)
	// Where the site is depends on the compiler.
	anywhere := func(text string) string { return regexp.MustCompile(`\+0x[0-9a-f]+`).ReplaceAllString(text, "+") }
	got := anywhere(in.Must(t, build(t), "list", "-v", "stripped/parcel.ko"))
	expect.Contains(t, anywhere(pageBlock(t, "$ sdtconvert list -v parcel.ko")), got)
	in.Must(t, "sh", "-ec", "rm parcel.ko parcel.mod.o; "+here.Replace(pageBlock(t, "make -C ")))
	if out := in.Output(t, "readelf", "-sW", "parcel.ko"); !strings.Contains(out, "__start_sdt_instances_set") {
		t.Errorf("no symbols around the records:\n%s", out)
	}
}

// checkDistributed lists the module of the page as distributions have it, compressed or stripped.
func checkDistributed(t *testing.T, in tools.Command) {
	t.Helper()
	tools.Need(t, "strip", "xz", "zstd", "gzip")
	list := in.Must(t, build(t), "list", "parcel.ko")
	in.Must(t, "sh", "-ec", "xz -k parcel.ko; zstd -q parcel.ko; gzip -k parcel.ko; mkdir stripped; strip --strip-debug -o stripped/parcel.ko parcel.ko")
	for _, name := range []string{"parcel.ko.xz", "parcel.ko.zst", "parcel.ko.gz"} {
		expect.Equal(t, list, in.Must(t, build(t), "list", name), "%s", name)
		tools.Refuses(t, "is compressed; decompress it first", build(t), filepath.Join(in.Directory, name))
	}
	expect.Equal(t, 1, strings.Count(list, " parcel_post posted\n"), "functions in %s", list)
	in.Must(t, "sh", "-ec", "strip --strip-unneeded -o bare.ko parcel.ko")
	tools.Refuses(t, "--functions", build(t), "list", filepath.Join(in.Directory, "bare.ko"))
}

// documented returns the makefile of docs/kernel.md, for the modules of testdata.
func documented(t *testing.T) string {
	t.Helper()
	makefile := pageBlock(t, "# Kbuild\n")
	here := strings.NewReplacer("obj-m := parcel.o\n", "obj-m := post.o sender.o\npost-y := post_main.o post_check.o\n", "ccflags-y := -I$(src)\n", "")
	return here.Replace(makefile)
}

// modules are the sources of testdata in a directory, and the kernel's tree with what
// make is to be told there.
type modules struct {
	directory, tree string
	variables       []string
}

func (m modules) path(name string) string { return filepath.Join(m.directory, name) }

func (m modules) read(t *testing.T, name string) string {
	t.Helper()
	return string(disk.Read(t, m.path(name)))
}

func (m modules) write(t *testing.T, makefile string) {
	t.Helper()
	expect.OK(t, os.CopyFS(m.directory, os.DirFS("testdata/modules")))
	disk.Write(t, m.path("sdt.h"), disk.Read(t, "../../../include/sdt.h"))
	// Without the directory's name in the debug information, the two have the same.
	makefile += "ccflags-y := -I" + m.directory + " -fdebug-prefix-map=" + m.directory + "=.\n"
	disk.Write(t, m.path("Kbuild"), makefile)
}

// try runs a target of kbuild. pahole is to work in one thread: with more, kbuild's
// -j, the order of types is another one each time.
func (m modules) try(target string, variables ...string) (string, error) {
	args := []string{"-C", m.tree, "M=" + m.directory, "PAHOLE_FLAGS=--btf_gen_floats --lang_exclude=rust", target}
	return tools.Try("make", slices.Concat(args, m.variables, variables)...)
}

func (m modules) must(t *testing.T, target string, variables ...string) string {
	t.Helper()
	return expect.Value(m.try(target, variables...))(t)
}

var stub = regexp.MustCompile(`(__dtrace_\w+?)_(post|sender)___(\w+)`)

// checkSites compares the listing of a module with the calls in its twin, which
// readelf shows.
func checkSites(t *testing.T, converted, twin string) {
	t.Helper()
	var want, got []string
	for _, m := range stub.FindAllStringSubmatch(tools.Output(t, "readelf", "-rW", twin), -1) {
		kind := "probe"
		if m[1] == "__dtrace_isenabled" {
			kind = "isenabled"
		}
		want = append(want, kind+" "+m[2]+":::"+m[3])
	}
	for _, p := range list(t, "sdtconvert", converted) {
		for _, s := range p.Sites {
			kind := strings.Replace(s.Kind, "tail", "probe", 1) // as its relocation is
			got = append(got, kind+" "+p.Provider+":::"+p.Name)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
		t.Errorf("calls in the twin (-) and sites (+): %s", diff)
	}
	if out := tools.Output(t, "readelf", "-sW", converted); strings.Contains(out, "__dtrace_") {
		t.Error("a stub is left")
	}
}

// checkVersions compares the checksums of the symbols that modules use.
func checkVersions(t *testing.T, converted, twin string) {
	t.Helper()
	got := tools.Output(t, "modprobe", "--dump-modversions", converted)
	want := tools.Output(t, "modprobe", "--dump-modversions", twin)
	if sortedLines(got) != sortedLines(want) || !strings.Contains(got, "module_layout") {
		t.Errorf("checksums of symbols:\n%s, and unconverted\n%s", got, want)
	}
}

func sortedLines(text string) string {
	lines := strings.Split(text, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// checkTypes compares the BTF of modules, and has pahole read it.
func checkTypes(t *testing.T, converted, twin, tree string) {
	t.Helper()
	if got, want := section(t, converted, ".BTF"), section(t, twin, ".BTF"); !bytes.Equal(got, want) || len(want) == 0 {
		t.Errorf("%d bytes of BTF are others than the %d of the twin", len(got), len(want))
	}
	out := tools.Must(t, "pahole", "--btf_base="+tree+"/vmlinux", "-F", "btf", "-C", "parcel", converted)
	if !strings.Contains(out, "weight;") {
		t.Errorf("pahole finds no struct parcel: %s", out)
	}
}

func section(t *testing.T, path, name string) []byte {
	t.Helper()
	out := filepath.Join(t.TempDir(), "section")
	tools.Must(t, "objcopy", "-O", "binary", "--only-section="+name, "--set-section-flags", name+"=alloc", path, out)
	return disk.Read(t, out)
}

// checkIncremental builds again after nothing has changed, and after sources have.
func (m modules) checkIncremental(t *testing.T) {
	before := map[string]string{"post.ko": m.read(t, "post.ko"), "sender.ko": m.read(t, "sender.ko")}
	for _, step := range []struct {
		touched string
		made    []string
	}{
		{"", nil},
		{"post_check.c", []string{"post.ko", "post.o", "post_check.o"}},
		{"sender.c", []string{"sender.ko", "sender.o"}},
		{"parcel.h", []string{"post.ko", "post.o", "post_check.o", "post_main.o", "sender.ko", "sender.o"}},
	} {
		old := m.times(t)
		if step.touched != "" {
			now := time.Now()
			expect.OK(t, os.Chtimes(m.path(step.touched), now, now))
		}
		m.must(t, "modules")
		var made []string
		for name, changed := range m.times(t) {
			if ext := filepath.Ext(name); (ext == ".o" || ext == ".ko") && !changed.Equal(old[name]) {
				made = append(made, name)
			}
		}
		slices.Sort(made)
		expect.Equal(t, step.made, made, "%q was touched: what was to be made (-) and what was (+)", step.touched)
		for name, want := range before {
			if m.read(t, name) != want {
				t.Errorf("%q was touched: %s is another", step.touched, name)
			}
		}
	}
}

// times returns those of all files, when they were last written.
func (m modules) times(t *testing.T) map[string]time.Time {
	t.Helper()
	times := map[string]time.Time{}
	for _, e := range expect.Value(os.ReadDir(m.directory))(t) {
		times[e.Name()] = expect.Value(e.Info())(t).ModTime()
	}
	return times
}

// checkSigned installs and signs the modules, and has openssl verify a signature.
// Linux: kernel/module_signature.c has the format.
func (m modules) checkSigned(t *testing.T) {
	installed := t.TempDir()
	m.must(t, "modules_install", "INSTALL_MOD_PATH="+installed, "DEPMOD=true")
	found, err := filepath.Glob(installed + "/lib/modules/*/*/post.ko*") // in extra, or updates from Linux 6.6 on
	if err != nil || len(found) != 1 {
		t.Fatalf("installed modules: %v %v", found, err)
	}
	if name, ok := strings.CutSuffix(found[0], ".xz"); ok {
		tools.Must(t, "xz", "--decompress", found[0])
		found[0] = name
	}
	data := disk.Read(t, found[0])
	unsigned := m.read(t, "post.ko")
	rest, ok := bytes.CutSuffix(data, []byte("~Module signature appended~\n"))
	if !ok || !strings.HasPrefix(string(data), unsigned) {
		t.Fatal("the module is not signed")
	}
	size := int(binary.BigEndian.Uint32(rest[len(rest)-4:]))
	signature := filepath.Join(t.TempDir(), "signature")
	disk.Write(t, signature, rest[len(rest)-12-size:len(rest)-12])
	tools.Must(t, "openssl", "cms", "-verify", "-binary", "-inform", "DER", "-in", signature, "-content", m.path("post.ko"),
		"-certfile", m.tree+"/certs/signing_key.pem", "-noverify", "-out", os.DevNull)

	// What is signed is listed as it was, and left as it is.
	if diff := cmp.Diff(list(t, "sdtconvert", m.path("post.ko")), list(t, "sdtconvert", found[0])); diff != "" {
		t.Errorf("unsigned (-) and signed (+): %s", diff)
	}
	tools.Must(t, "sdtconvert", found[0])
	if again, err := os.ReadFile(found[0]); err != nil || !bytes.Equal(again, data) {
		t.Errorf("a signed module is another after a conversion: %v", err)
	}
}

// checkFailure has the conversion fail.
func (m modules) checkFailure(t *testing.T) {
	failing := t.TempDir()
	expect.OK(t, os.WriteFile(failing+"/sdtconvert", []byte("#!/bin/sh\necho refused >&2\nexit 1\n"), 0o777))
	t.Setenv("PATH", failing+":"+os.Getenv("PATH"))
	// make begins with post.o, and does not go on to sender.o if that fails.
	for _, name := range [][2]string{{"sender.c", "sender.o"}, {"post_main.c", "post.o"}} {
		source, object := name[0], name[1]
		now := time.Now().Add(time.Minute)
		expect.OK(t, os.Chtimes(m.path(source), now, now))
		if out, err := m.try("modules"); err == nil || !strings.Contains(out, "refused") {
			t.Errorf("make goes on: %v\n%s", err, out)
		}
		disk.Absent(t, m.path(object))
	}
}

// newTree has scripts/kernel-tree make a directory to build modules in, and returns
// its name and the variables that make is to be told. It fails the test if the
// headers that the directory is made of are others when the test ends.
func newTree(t *testing.T, root string) (tree string, variables []string) {
	t.Helper()
	headers, err := filepath.Glob(root + "/usr/src/linux-headers-*-amd64")
	if err != nil || len(headers) == 0 {
		tools.Unavailable(t, "no linux-headers-amd64")
	}
	before := snapshot(t, headers)
	t.Cleanup(func() {
		expect.Equal(t, before, snapshot(t, headers), "the headers before (-) and after (+)")
	})
	tree = filepath.Join(t.TempDir(), "tree")
	script := exec.Command("../../../scripts/kernel-tree", tree)
	script.Env = append(os.Environ(), "root="+root)
	out, err := script.Output()
	if err != nil && os.Getenv("CI") != "true" {
		t.Skipf("no kernel: %v", err) // there may be no network
	} else if err != nil {
		t.Fatal(err)
	}
	return tree, strings.Fields(string(out))
}

// snapshot returns the kind, size and time of each file in directories.
func snapshot(t *testing.T, directories []string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, directory := range directories {
		err := filepath.WalkDir(directory, func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := d.Info()
			if err == nil {
				files[path] = fmt.Sprint(info.Mode(), info.Size(), info.ModTime())
			}
			return err
		})
		expect.OK(t, err)
	}
	return files
}

// TestTree makes a tree of headers as those of Linux 6.12 are, with a vmlinux and a
// resolve_btfids: the tree has these, and nothing is written through it.
func TestTree(t *testing.T) {
	tools.Need(t, "openssl")
	root := t.TempDir()
	headers := filepath.Join(root, "usr/src/linux-headers-6.12.0-amd64")
	resolve := "tools/bpf/resolve_btfids/resolve_btfids"
	expect.OK(t, os.MkdirAll(filepath.Join(headers, filepath.Dir(resolve)), 0o777))
	for name, text := range map[string]string{
		"Makefile": "KBUILD_OUTPUT=/usr/src/linux-headers-6.12.0-amd64\n", ".config": "", "vmlinux": "types\n", resolve: "",
	} {
		expect.OK(t, os.WriteFile(filepath.Join(headers, name), []byte(text), 0o777))
	}
	tree, variables := newTree(t, root)
	expect.Equal(t, []string{"CONFIG_MODULE_SIG_KEY=certs/signing_key.pem"}, variables, "variables for make")
	want := strings.TrimPrefix(headers, root) + "/vmlinux"
	expect.Equal(t, want, expect.Value(os.Readlink(filepath.Join(tree, "vmlinux")))(t), "the link vmlinux")
	expect.Equal(t, "KBUILD_OUTPUT="+tree+"\n", string(disk.Read(t, filepath.Join(tree, "Makefile"))), "the Makefile")
}
