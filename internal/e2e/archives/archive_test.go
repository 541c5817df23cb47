package archives

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// converter is the program under test.
var converter string

func TestMain(m *testing.M) {
	tools.Main(m, `TestConverted|TestThin`, &converter, nil)
}

// maker is an archiver and how it is told to make an archive.
type maker struct {
	tool string
	args []string
	env  string
	thin bool
}

func (m maker) String() string {
	return strings.TrimSpace(m.env + " " + m.tool + " " + strings.Join(m.args, " "))
}

// wide makes LLVM's ar write an index of 64 bits.
const wide = "SYM64_THRESHOLD=100"

// All but the first two take no dates from files.
var makers = []maker{
	{tool: "ar", args: []string{"qcSU"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=darwin", "qcSU"}},
	{tool: "ar", args: []string{"qcsD"}},
	{tool: "ar", args: []string{"qcSD"}},
	{tool: "ar", args: []string{"qcsDT"}, thin: true},
	{tool: "ar", args: []string{"qcSDT"}, thin: true},
	{tool: toolchains.OldLLVM("llvm-ar"), args: []string{"--format=gnu", "qcsD"}},
	{tool: toolchains.OldLLVM("llvm-ar"), args: []string{"--format=bsd", "qcsD"}},
	{tool: toolchains.OldLLVM("llvm-ar"), args: []string{"--format=darwin", "qcsD"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=gnu", "qcsD"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=bsd", "qcsD"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=darwin", "qcsD"}},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=gnu", "--thin", "qcsD"}, thin: true},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=gnu", "qcsD"}, env: wide},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=darwin", "qcsD"}, env: wide},
	{tool: toolchains.LLVM("llvm-ar"), args: []string{"--format=gnu", "--thin", "qcsD"}, env: wide, thin: true},
}

// make makes an archive of files in their directory.
func (m maker) make(t *testing.T, directory, archive string, files ...string) {
	t.Helper()
	c := tools.Command{Directory: directory}
	if m.env != "" {
		c.Env = []string{m.env}
	}
	c.Must(t, m.tool, append(append(m.args[:len(m.args):len(m.args)], archive), files...)...)
}

// members are the files of the archives: with short names and long ones, with probes
// and without, and twice the same.
var members = []struct{ name, object string }{
	{"plain.o", "plain"},
	{"calls.o", "calls.amd64-gcc12-O2.o"},
	{"odd.txt", ""},
	{"calls_in_functions_of_their_own.o", "calls.amd64-clang19-sections.o"},
	{"comdat.o", "comdat.amd64-gcc12-g.o"},
	{"fifteen_chars.o", "existing.amd64-gcc12-O2.o"},
	{"sub/sixteen_chars_.o", "existing.amd64-clang19-static.o"},
	{"empty", ""},
}

// newDirectory writes the members into a new directory, and returns their names with one
// of them twice.
func newDirectory(t *testing.T) (directory string, names []string) {
	t.Helper()
	directory = t.TempDir()
	expect.OK(t, os.Mkdir(filepath.Join(directory, "sub"), 0o777))
	for i, m := range members {
		var data []byte
		switch {
		case m.name == "plain.o":
			data = plain(t)
		case m.object != "":
			data = objects.Read(t, m.object)
		case m.name != "empty":
			data = []byte("odd")
		}
		path := filepath.Join(directory, m.name)
		expect.OK(t, os.WriteFile(path, data, 0o640))
		date := time.Unix(1_000_000_000+int64(i), 0)
		expect.OK(t, os.Chtimes(path, date, date))
		names = append(names, m.name)
	}
	return directory, append(names, "calls.o")
}

// plain returns an object without probes that defines symbols of every kind.
func plain(t *testing.T) []byte {
	t.Helper()
	directory := t.TempDir()
	source, object := filepath.Join(directory, "plain.s"), filepath.Join(directory, "plain.o")
	text := ".globl f, a\nf: call u\nlocal: ret\n.weak w, wu\nw: ret\n.quad wu\n.comm common,4\n.data\n.type q,@gnu_unique_object\nq: .long 1\n.set a, 5\n"
	disk.Write(t, source, text)
	tools.Must(t, "as", "-o", object, source)
	return disk.Read(t, object)
}

// run runs the program in a directory, which has to succeed without a word.
func run(t *testing.T, directory string, args ...string) {
	t.Helper()
	if args[0] != "stubs" {
		args = append([]string{"--layout=pairs"}, args...)
	}
	if out := (tools.Command{Directory: directory}).Must(t, converter, args...); out != "" {
		t.Fatalf("sdtconvert %q says %s", args, out)
	}
}

// convertFiles converts the members that are objects, and leaves their dates.
func convertFiles(t *testing.T, directory string, flags ...string) {
	t.Helper()
	for _, m := range members {
		if m.object == "" {
			continue
		}
		path := filepath.Join(directory, m.name)
		info := expect.Value(os.Stat(path))(t)
		run(t, directory, append(flags[:len(flags):len(flags)], m.name)...)
		expect.OK(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	}
}

func read(t *testing.T, directory, name string) []byte {
	t.Helper()
	return disk.Read(t, filepath.Join(directory, name))
}

func same(t *testing.T, directory, a, b string) {
	t.Helper()
	x, y := read(t, directory, a), read(t, directory, b)
	if bytes.Equal(x, y) {
		return
	}
	at := 0
	for at < min(len(x), len(y)) && x[at] == y[at] {
		at++
	}
	t.Errorf("%s has %d bytes, %s %d, and they differ at %#x", a, len(x), b, len(y), at)
}

// A converted archive is, byte for byte, what its archiver makes of its converted
// members, and what ranlib makes of itself.
func TestConvertedArchiveIsThatOfConvertedMembers(t *testing.T) {
	for _, m := range product.Few(t.Name(), makers) {
		for _, flags := range [][]string{nil, {"--stapsdt"}, {"--layout", "relative"}} {
			t.Run(fmt.Sprint(m, flags), func(t *testing.T) {
				t.Parallel()
				tools.Need(t, m.tool, "as", "ranlib")
				directory, names := newDirectory(t)
				m.make(t, directory, "lib.a", names...)
				before := read(t, directory, "lib.a")
				if !m.thin {
					run(t, directory, append(flags, "-o", "to.a", "lib.a")...)
					if !bytes.Equal(read(t, directory, "lib.a"), before) {
						t.Error("-o has changed the input")
					}
				}
				run(t, directory, append(flags, "lib.a")...)
				if !m.thin {
					same(t, directory, "lib.a", "to.a")
					convertFiles(t, directory, flags...)
				}
				m.make(t, directory, "collected.a", names...)
				same(t, directory, "lib.a", "collected.a")
				if bytes.Equal(before, read(t, directory, "lib.a")) {
					t.Error("nothing was converted")
				}
				if m.tool == "ar" && m.args[0] == "qcsD" {
					disk.Write(t, filepath.Join(directory, "ranlib.a"), read(t, directory, "lib.a"))
					tools.Must(t, "ranlib", "-D", filepath.Join(directory, "ranlib.a"))
					same(t, directory, "lib.a", "ranlib.a")
				}
			})
		}
	}
}

// Written to another file, a thin archive becomes the regular one that ar makes of
// its converted members, which stay as they are.
func TestThinArchiveBecomesRegular(t *testing.T) {
	for _, m := range product.Few(t.Name(), makers) {
		if !m.thin || m.env == wide {
			continue
		}
		for _, flags := range [][]string{nil, {"--stapsdt"}} {
			t.Run(fmt.Sprint(m, flags), func(t *testing.T) {
				t.Parallel()
				tools.Need(t, m.tool, "as", "ar")
				directory, names := newDirectory(t)
				m.make(t, directory, "thin.a", names...)
				before := read(t, directory, "calls.o")
				run(t, directory, append(flags, "-o", "regular.a", "thin.a")...)
				if !bytes.Equal(read(t, directory, "calls.o"), before) {
					t.Error("-o has changed a member")
				}
				for _, name := range names { // ar takes modes from files that llvm-ar does not look at
					expect.OK(t, os.Chmod(filepath.Join(directory, name), 0o644))
				}
				convertFiles(t, directory, flags...)
				op := "qcsD"
				if strings.Contains(m.args[len(m.args)-1], "S") {
					op = "qcSD"
				}
				maker{tool: "ar", args: []string{op}}.make(t, directory, "collected.a", names...)
				same(t, directory, "regular.a", "collected.a")
			})
		}
	}
}
