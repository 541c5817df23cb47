package lines_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/lines"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/toolchains"
)

func table(t *testing.T, data []byte) (*elfreloc.Object, *lines.Table, error) {
	t.Helper()
	o := objects.Open(t, data)
	m := machines.Lookup(o.ABI())
	got, err := lines.New(o, m)
	return o, got, err
}

func TestWithoutDebugInformationNothingIsKnown(t *testing.T) {
	o, got, err := table(t, objects.Read(t, "calls.amd64-gcc12-O2.o"))
	expect.OK(t, err)
	expect.Equal(t, "", got.Lookup(objects.Section(t, o, ".text"), 0))
}

func TestOutsideOfCodeNothingIsKnown(t *testing.T) {
	o, got, err := table(t, objects.Read(t, "calls.amd64-gcc12-g.o"))
	expect.OK(t, err)
	text := objects.Section(t, o, ".text")
	for _, c := range []struct {
		section int
		off     uint64
	}{{objects.Section(t, o, ".data"), 0}, {objects.Section(t, o, ".debug_info"), 0}, {0, 0}} {
		expect.Equal(t, "", got.Lookup(c.section, c.off), "section %d+%#x", c.section, c.off)
	}
	if s := got.Lookup(text, 0); !strings.HasPrefix(s, "calls.c:") {
		t.Errorf("the first instruction is of %q", s)
	}
}

// A table that makes no sense is an error, never a panic.
func TestBrokenDebugInformationIsAnError(t *testing.T) {
	data := objects.Read(t, "none.amd64-gcc12-g.o")
	o, _, err := table(t, data)
	expect.OK(t, err)
	info := o.Sections[objects.Section(t, o, ".debug_info")]
	failed := 0
	for off := range info.Size {
		broken := bytes.Clone(data)
		broken[info.Offset+off] ^= 0xff
		if _, got, err := table(t, broken); err != nil {
			failed++
			if got == nil || !strings.HasPrefix(err.Error(), "a.o: debug information: ") {
				t.Fatalf("byte %d: %v, table %v", off, err, got)
			}
		}
	}
	if failed == 0 {
		t.Error("no change made a difference")
	}
}

var codeRow = regexp.MustCompile(`^\s*([0-9a-f]+):\s`)

// An independent reader of the same table gives the same lines.
func TestLinesAreThoseOfObjdump(t *testing.T) {
	objdump, err := exec.LookPath(toolchains.LLVM("llvm-objdump"))
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip(err)
	}
	for _, name := range []string{
		"calls.amd64-gcc12-g.o", "calls.amd64-clang19-g.o", "calls.arm64-gcc12-g.o", "calls.arm64-clang19-g.o",
		"locals.loong64-clang19-g.o", "locals.riscv64-clang19-g.o", "locals.riscv64-clang14-g.o",
	} {
		out := expect.Value(exec.Command(objdump, "-dl", "-j", ".text", filepath.Join(objects.Directory(), name)).Output())(t)
		o, got, err := table(t, objects.Read(t, name))
		expect.OK(t, err)
		text, current, n := objects.Section(t, o, ".text"), "", 0
		for line := range strings.Lines(string(out)) {
			if row, ok := strings.CutPrefix(line, "; "); ok && !strings.Contains(row, "():") {
				current = filepath.Base(strings.TrimSpace(row))
			} else if m := codeRow.FindStringSubmatch(line); m != nil && current != "" {
				off := expect.Value(strconv.ParseUint(m[1], 16, 64))(t)
				s := filepath.Base(got.Lookup(text, off))
				if s == "." {
					continue // objdump repeats the line before for what has none
				}
				if n++; s != current {
					t.Errorf("%s: .text+%#x is %q, want %q", name, off, s, current)
				}
			}
		}
		if n < 50 {
			t.Errorf("%s: only %d instructions compared", name, n)
		}
	}
}
