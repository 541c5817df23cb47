package machines_test

import (
	"bytes"
	"path/filepath"
	"slices"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// A machine with helpers has a mark for them: one instruction, that is not part of any stub
// and no breakpoint.
func TestHelpersHaveAMark(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		mark := m.Traits().HelperMark
		if len(mark.Code) == 0 || mark.Text == "" || mark.Reloc != nil || len(m.Disassemble(mark.Code, 0)) != 1 {
			t.Fatalf("%+v is %q", mark, m.Disassemble(mark.Code, 0))
		}
		for _, stub := range allStubs(m) {
			for _, insn := range m.Stub(stub) {
				if bytes.Equal(insn.Code, mark.Code) {
					t.Errorf("%+v has the mark", stub)
				}
			}
		}
		for _, b := range m.Traits().Breakpoints {
			if bytes.HasPrefix(mark.Code, b) {
				t.Errorf("the mark is the breakpoint % x", b)
			}
		}
	})
}

// Others' assemblers make the mark of its text.
func TestMarksAssemble(t *testing.T) {
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		for _, as := range assemblers(t, m) {
			tools.Need(t, as[0])
			mark := m.Traits().HelperMark
			got := textOf(t, as, ".text", mark.Text+"\n")
			if !bytes.HasPrefix(got, mark.Code) {
				t.Errorf("%s makes % x of %s, want % x", as[0], got, mark.Text, mark.Code)
			}
		}
	})
}

// textOf returns a section of what a command makes of a source.
func textOf(t *testing.T, command []string, section, source string) []byte {
	t.Helper()
	directory := t.TempDir()
	in, out := filepath.Join(directory, "in"), filepath.Join(directory, "out.o")
	disk.Write(t, in, source)
	tools.Must(t, command[0], append(slices.Clone(command[1:]), "-o", out, in)...)
	s := disk.OpenELF(t, out).Section(section)
	if s == nil {
		t.Fatalf("no section %s", section)
	}
	return expect.Value(s.Data())(t)
}

// The return thunk is what gcc makes of it, of each machine that has one.
func TestReturnThunksAreThoseOfGCC(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		thunk := m.Traits().ReturnThunk
		if (thunk.Symbol == "") != (thunk.Code == nil) {
			t.Fatalf("got %+v", thunk)
		}
		if thunk.Symbol == "" {
			return
		}
		all := toolchains.All()
		i := slices.IndexFunc(all, func(c *toolchains.Machine) bool { return c.Name == m.Traits().Name })
		cc := all[i].CC(toolchains.GCC)
		tools.Need(t, cc[0])
		command := append(slices.Clone(cc), "-O2", "-mfunction-return=thunk", "-c", "-x", "c")
		got := textOf(t, command, ".text."+thunk.Symbol, "int f(int x) { return x + 1; }\n")
		if !bytes.HasPrefix(got, thunk.Code) {
			t.Errorf("gcc makes % x, want % x", got, thunk.Code)
		}
	})
}
