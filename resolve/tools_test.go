package resolve_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/resolve"
)

// need skips a test without which a tool is missing. In CI every tool is there,
// and its absence is a fault.
func need(t testing.TB, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err == nil {
			continue
		}
		if os.Getenv("CI") == "true" {
			t.Fatal("no " + tool)
		}
		t.Skip("no " + tool)
	}
}

// run runs a tool and returns what it prints.
func run(t testing.TB, stdin, name string, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(name, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, &stderr)
	}
	return stdout.String()
}

func openFile(t testing.TB, path string) *elfreloc.Object {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	o, err := elfreloc.Open(f, info.Size(), path)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// nowhere are the options for an image that has no debug file.
var nowhere = resolve.Options{DebugRoots: []string{}}

func tableOf(t testing.TB, path string, opts resolve.Options) *resolve.Table {
	t.Helper()
	if opts.Warn == nil {
		opts.Warn = func(err error) { t.Errorf("%s: warning: %v", path, err) }
	}
	table, err := resolve.New(openFile(t, path), opts)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// toolchain compiles and links for a machine.
type toolchain struct {
	name    string
	prefix  string
	linkers map[string]string
}

var toolchains = []toolchain{
	{"amd64", "", map[string]string{"bfd": "ld.bfd", "gold": "ld.gold", "lld": "ld.lld-19", "mold": "mold"}},
	{"arm64", "aarch64-linux-gnu-", map[string]string{
		"bfd": "aarch64-linux-gnu-ld.bfd", "gold": "aarch64-linux-gnu-ld.gold", "lld": "ld.lld-19", "mold": "mold"}},
	{"riscv64", "riscv64-linux-gnu-", map[string]string{"bfd": "riscv64-linux-gnu-ld.bfd", "lld": "ld.lld-19", "mold": "mold"}},
}

// source is the path of a source in testdata.
func source(name string) string { return filepath.Join("testdata", name) }

// compile compiles sources of testdata in a new folder.
func compile(t testing.TB, compiler string, flags []string, sources ...string) (objects []string) {
	t.Helper()
	folder := t.TempDir()
	for _, s := range sources {
		out := filepath.Join(folder, strings.TrimSuffix(s, filepath.Ext(s))+".o")
		run(t, "", compiler, append(append([]string{}, flags...), "-c", source(s), "-o", out)...)
		objects = append(objects, out)
	}
	return objects
}

// driver is the flag with which a compiler driver finds a linker: a folder in
// which it is called ld.
func driver(t testing.TB, linker string) string {
	t.Helper()
	path, err := exec.LookPath(linker)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(path, filepath.Join(folder, "ld")); err != nil {
		t.Fatal(err)
	}
	return "-B" + folder + "/"
}
