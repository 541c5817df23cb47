package locate

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
)

// refuse fails a test that warns.
func refuse(t *testing.T) func(error) {
	return func(err error) {
		t.Helper()
		t.Errorf("warning: %v", err)
	}
}

func open(t *testing.T, path string, o Options) *Target {
	t.Helper()
	s := expect.Value(OpenFile(path, o))(t)
	t.Cleanup(func() { s.Close() })
	return s
}

func find(t *testing.T, s *Target, text string) *Address {
	t.Helper()
	return expect.Value(Find(s, text))(t)
}

// The line is calls.c's own, as its compiler has noted it.
func TestFindInAnObject(t *testing.T) {
	path := filepath.Join(objects.Directory(), "calls.amd64-gcc12-g.o")
	for _, lines := range []bool{false, true} {
		a := find(t, open(t, path, Options{Lines: lines, Warn: refuse(t)}), ".text+0x24")
		source := ""
		if lines {
			source = "calls.c:54"
		}
		if a.Function != "calls_zero" || a.FunctionOffset != 4 || a.Place.String() != "calls_zero+0x4" || !strings.HasSuffix(a.Source, source) || (a.Source == "") == lines {
			t.Errorf("lines %v: %+v", lines, a)
		}
		if a.Object != path || a.Base != "0x0" || a.FileOffset != "0x64" {
			t.Errorf("%+v", a)
		}
	}
}

func TestFindWhatIsNowhere(t *testing.T) {
	path := filepath.Join(objects.Directory(), "calls.amd64-gcc12-g.o")
	s := open(t, path, Options{Warn: refuse(t)})
	for text, want := range map[string]string{
		"0x10":       `invalid address "0x10": in an object, want a section and an offset, .text+0x10`,
		".text+x":    `"x" is not an address`,
		".none+0x0":  path + `: has no section ".none"`,
		"+0x0":       path + `: has no section ""`,
		".data+0x0":  path + ": .data+0x0: is not in code",
		".text+fff0": path + ": .text+0xfff0: is not in code",
	} {
		a, err := Find(s, text)
		expect.Equal(t, want, fmt.Sprint(err), "%s", text)
		if a == nil || a.Address != text || a.Function != "" || a.Known() {
			t.Errorf("%s: %+v", text, a)
		}
	}
	if _, err := OpenFile(filepath.Join(t.TempDir(), "none"), Options{Warn: refuse(t)}); !os.IsNotExist(err) {
		t.Errorf("error %v", err)
	}
	_, err := OpenFile(filepath.Join(objects.Directory(), "recipes.tsv"), Options{Warn: refuse(t)})
	expect.Error(t, err, "is text")
}

func TestFindInAProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("processes can be looked at on Linux only")
	}
	s := expect.Value(OpenProcess(os.Getpid(), Options{Warn: func(error) {}}))(t)
	defer s.Close()
	want := fmt.Sprintf("process %d: 0x1: is in no file that is loaded", os.Getpid())
	expect.Equal(t, want, expect.Failure(Find(s, "1")))
	var pc [1]uintptr
	runtime.Callers(1, pc[:])
	a := find(t, s, fmt.Sprintf("%#x", pc[0]))
	self := expect.Value(os.Executable())(t)
	if a.Object != self || a.FileOffset == "" || a.Base == "" {
		t.Errorf("%+v, want one of %s", a, self)
	}
}

const program = `
static int __attribute__((noinline)) hidden(int n) { return n * 3; }
static inline __attribute__((always_inline)) int folded(int n) { return hidden(n) + 1; }
int main(int n, char **argv) { return folded(n); }
`

// stripped builds a program twice: whole, and stripped, with a separate debug file
// beside it, .debug/stripped.debug, that a link names.
func stripped(t *testing.T) (whole, image string) {
	t.Helper()
	tools.Need(t, "gcc", "objcopy", "strip", "nm")
	directory := t.TempDir()
	path := func(name string) string { return filepath.Join(directory, name) }
	disk.Write(t, path("program.c"), program)
	expect.OK(t, os.Mkdir(path(".debug"), 0o777))
	debug := path(".debug/stripped.debug")
	tools.Output(t, "gcc", "-g", "-O2", "-Wl,--build-id=none", "-o", path("whole"), path("program.c"))
	tools.Output(t, "objcopy", "--only-keep-debug", path("whole"), debug)
	tools.Output(t, "strip", "-o", path("stripped"), path("whole"))
	tools.Output(t, "objcopy", "--add-gnu-debuglink="+debug, path("stripped"))
	return path("whole"), path("stripped")
}

// address returns that of a symbol, as nm has it.
func address(t *testing.T, image, symbol string) string {
	t.Helper()
	for line := range strings.Lines(tools.Output(t, "nm", image)) {
		if f := strings.Fields(line); len(f) == 3 && f[2] == symbol {
			return f[0]
		}
	}
	t.Fatalf("%s has no symbol %s", image, symbol)
	return ""
}

// What was stripped is known from the debug file: all that the whole program tells.
func TestSeparateDebugFile(t *testing.T) {
	whole, image := stripped(t)
	o := Options{Lines: true, Inlines: true, Warn: refuse(t)}
	for _, symbol := range []string{"hidden", "main"} {
		want := find(t, open(t, whole, o), address(t, whole, symbol))
		got := find(t, open(t, image, o), address(t, whole, symbol))
		if want.Function != symbol || want.Source == "" {
			t.Errorf("the whole program has %+v", want)
		}
		want.Object = image
		a, _ := json.Marshal(want)
		expect.Equal(t, string(a), string(expect.Value(json.Marshal(got))(t)))
	}
}

// It is opened, and compared with the image, once, for functions and for lines.
func TestSeparateDebugFileIsFoundOnce(t *testing.T) {
	_, image := stripped(t)
	s := open(t, image, Options{Lines: true, Warn: refuse(t)}).file
	debug, err := s.debugObject()
	if err != nil || debug == nil || debug.Name != s.Functions().DebugFile() || s.DebugInfo() == nil {
		t.Errorf("lines are of %v, functions of %q: %v", debug, s.Functions().DebugFile(), err)
	}
}

// One that is not the image's is warned of, and not used.
func TestForeignDebugFile(t *testing.T) {
	whole, image := stripped(t)
	debug := filepath.Join(filepath.Dir(image), ".debug", "stripped.debug")
	file := expect.Value(os.OpenFile(debug, os.O_WRONLY|os.O_APPEND, 0))(t)
	expect.Value(file.WriteString("x"))(t)
	expect.OK(t, file.Close())
	var warnings []string
	s := open(t, image, Options{Lines: true, Warn: func(err error) { warnings = append(warnings, err.Error()) }})
	if a := find(t, s, address(t, whole, "hidden")); a.Source != "" || a.Function == "hidden" {
		t.Errorf("%+v", a)
	}
	if len(warnings) == 0 {
		t.Error("no warning")
	}
	for _, w := range warnings {
		if !strings.HasPrefix(w, "debug file "+debug+": CRC-32 ") {
			t.Errorf("warning %s", w)
		}
	}
}

// The chain of inlined functions ends with the one that holds the address, by the
// name that it has everywhere.
func TestInlines(t *testing.T) {
	whole, _ := stripped(t)
	s := open(t, whole, Options{Lines: true, Inlines: true, Warn: refuse(t)})
	if a := find(t, s, address(t, whole, "hidden")); a.Inlines != nil {
		t.Errorf("%+v", a.Inlines)
	}
	start := find(t, s, address(t, whole, "main"))
	var n uint64
	expect.Value(fmt.Sscanf(start.Address, "%x", &n))(t)
	for off := range uint64(32) {
		a, err := Find(s, fmt.Sprintf("%x", n+off))
		if err != nil || a.Function != "main" {
			break
		}
		if len(a.Inlines) == 2 {
			if a.Inlines[0].Function != "folded" || a.Inlines[1].Function != "main" || a.Inlines[0].Source != a.Source {
				t.Errorf("%+v", a)
			}
			return
		}
	}
	t.Error("no address of main is in folded")
}

func TestModuleName(t *testing.T) {
	data := objects.Read(t, "small.amd64-clang19-O2.o")
	for _, test := range []struct {
		path  string
		osabi elf.OSABI
		want  string
	}{
		{"/boot/kernel/kernel", elf.ELFOSABI_FREEBSD, "kernel"},
		{"kernel.full", elf.ELFOSABI_FREEBSD, "kernel"},
		{"/usr/lib/debug/boot/kernel/kernel.debug", elf.ELFOSABI_FREEBSD, "kernel"},
		{"coffee.ko", elf.ELFOSABI_FREEBSD, "coffee"},
		{"coffee.ko.debug", elf.ELFOSABI_FREEBSD, "coffee"},
		{"post.ko", elf.ELFOSABI_NONE, "post"},
		{"app.debug", elf.ELFOSABI_NONE, "app.debug"},
		{"libc.so.6", elf.ELFOSABI_NONE, "libc.so.6"},
		{".ko", elf.ELFOSABI_NONE, ".ko"},
	} {
		data[elf.EI_OSABI] = byte(test.osabi)
		expect.Equal(t, test.want, moduleName(test.path, objects.Open(t, data)), "%s of %v", test.path, test.osabi)
	}
}
