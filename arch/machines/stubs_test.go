package machines_test

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// allStubs returns the stubs that a machine may be asked for.
func allStubs(m arch.Machine) []arch.Stub {
	var all []arch.Stub
	for k := range arch.Kinds {
		for _, pad := range []bool{false, true} {
			for _, to := range []string{"", thunk} {
				if (!pad || m.Traits().Features.LandingPad != 0) && (to == "" || m.Traits().ReturnThunk.Symbol != "") {
					all = append(all, arch.Stub{Kind: k, LandingPad: pad, Thunk: to})
					if k == arch.Enabled {
						all = append(all, arch.Stub{Kind: k, LandingPad: pad, Thunk: to, Semaphore: semaphore, Self: self})
					}
				}
			}
		}
	}
	return all
}

// codeOf returns the code of instructions, with their relocations from its start.
func codeOf(insns []arch.Insn) (code []byte, relocs []elfreloc.Relocation) {
	for _, i := range insns {
		if i.Reloc != nil {
			r := *i.Reloc
			r.Offset += uint64(len(code))
			relocs = append(relocs, r)
		}
		code = append(code, i.Code...)
	}
	return code, relocs
}

func TestStubs(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		want := map[arch.Stub]*stubCase{}
		for _, s := range c.stubs {
			want[s.stub] = s
		}
		all := allStubs(m)
		expect.Equal(t, len(all), len(want), "cases of stubs")
		for _, stub := range all {
			s := want[stub]
			if s == nil {
				t.Errorf("no case of %+v", stub)
				continue
			}
			insns := m.Stub(stub)
			code, relocs := codeOf(insns)
			expect.Equal(t, s.code, code, "%s", s.name)
			if got := asm(m, code); s.asm != "" && got != s.asm {
				t.Errorf("%s is %s, want %s", s.name, got, s.asm)
			}
			if stub.Semaphore == "" && (len(relocs) == 1) != (stub.Thunk != "") {
				t.Errorf("%s: relocations %+v", s.name, relocs)
			}
			for _, i := range insns {
				if (i.Reloc == nil) != (i.Symbol == "") || i.Symbol != "" && !slices.Contains([]string{stub.Thunk, stub.Semaphore, stub.Self}, i.Symbol) || i.Text == "" {
					t.Errorf("%s: %+v", s.name, i)
				}
				if i.Symbol == self && !m.Traits().SelfReference {
					t.Errorf("%s names itself, and the traits do not tell", s.name)
				}
				if i.Symbol == thunk && (i.Reloc.Offset != m.Traits().ReturnThunk.Field || !m.Traits().Rela != i.Reloc.Implicit) {
					t.Errorf("%s: relocation %+v, want one at %d", s.name, i.Reloc, m.Traits().ReturnThunk.Field)
				}
			}
		}
	})
}

// A helper loads the semaphore, and says so to Load, which does not take any other stub for
// one.
func TestHelpersLoadSemaphores(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		for _, stub := range allStubs(m) {
			code, _ := codeOf(m.Stub(stub))
			if _, ok := m.LoadedSemaphore(arch.Text{Code: code, Start: 0x1000}, 0x1000); ok != (stub.Semaphore != "") {
				t.Errorf("%+v loads a semaphore: %v", stub, ok)
			}
			if uint64(len(code)) < m.Traits().Load && stub.LandingPad && stub.Semaphore != "" {
				t.Errorf("%+v has fewer than the %d bytes of Sizes.Load", stub, m.Traits().Load)
			}
		}
	})
}

// assemblers returns those that a machine's toolchains have, as commands that take -o, a
// file and another.
func assemblers(t *testing.T, m arch.Machine) [][]string {
	t.Helper()
	all := toolchains.All()
	i := slices.IndexFunc(all, func(c *toolchains.Machine) bool { return c.Name == m.Traits().Name })
	if i < 0 {
		t.Fatal("the machine has no line in internal/testkit/toolchains")
	}
	c := all[i]
	known := [][]string{append(slices.Clone(c.CC(toolchains.Clang)), "-c", "-x", "assembler")}
	if c.Has(toolchains.GCC) {
		known = append(known, append([]string{c.Tool("as")}, c.Assembler...))
	}
	return known
}

// Others' assemblers make of the text of each stub what its code is.
func TestStubsAssemble(t *testing.T) {
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		for _, as := range product.Few(t.Name(), assemblers(t, m)) {
			t.Run(as[0], func(t *testing.T) {
				tools.Need(t, as[0])
				for _, stub := range allStubs(m) {
					checkAssembled(t, m, stub, as)
				}
			})
		}
	})
}

func checkAssembled(t *testing.T, m arch.Machine, stub arch.Stub, as []string) {
	t.Helper()
	directory := t.TempDir()
	source, object := filepath.Join(directory, "stub.s"), filepath.Join(directory, "stub.o")
	var text strings.Builder
	if stub.Self != "" {
		fmt.Fprintln(&text, stub.Self+":")
	}
	for _, i := range m.Stub(stub) {
		fmt.Fprintln(&text, i.Source(i.Symbol))
	}
	disk.Write(t, source, text.String())
	tools.Must(t, as[0], append(slices.Clone(as[1:]), "-o", object, source)...)
	section := disk.OpenELF(t, object).Section(".text")
	got := expect.Value(section.Data())(t)
	want, relocs := codeOf(m.Stub(stub))
	for i := range relocs {
		if relocs[i].Implicit { // the assembler's have it in the code alone
			relocs[i].Addend = 0
		}
	}
	if n := len(want); n < len(got) && uint64(len(got)-n) < section.Addralign {
		got = got[:n] // clang fills some sections up to their alignment
	}
	expect.Equal(t, want, got, "%+v, %q", stub, text.String())
	found := []elfreloc.Relocation(nil)
	o := tools.OpenELF(t, object)
	for _, rs := range expect.Value(o.RelocSections())(t) {
		if o.Sections[rs.Target].Name == ".text" {
			found = append(found, readRelocs(t, o, rs)...)
			expect.Equal(t, m.Traits().Rela, rs.Rela, "relocations with addends")
		}
	}
	expect.Equal(t, relocs, found, "%+v", stub)
}

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

// What DisableDOF makes of a site is found again at its relocation, and nothing of it
// changes then. No kind is taken for the other.
func TestDOFFormsAreFoundAgain(t *testing.T) {
	some := false
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		d, ok := m.(arch.DOFMachine)
		expect.Equal(t, m.Traits().DOF.Distance != 0, ok, "has forms, with the traits %+v", m.Traits().DOF)
		if !ok {
			return
		}
		some = true
		for _, s := range c.sites {
			for k := range arch.Kinds {
				for _, filler := range fillers {
					checkDOF(t, d, s, k, filler)
				}
			}
		}
	})
	if !some {
		t.Error("no machine has any")
	}
}

func checkDOF(t *testing.T, d arch.DOFMachine, s *siteCase, k arch.Kind, filler []byte) {
	text, off := placed(s.code, filler)
	text = s.mapped(text)
	field := s.at(off)[0].Offset
	if site, ok := d.DisabledDOF(text, field, k); ok && s.form != arch.Nop {
		t.Errorf("%s is a disabled form before it is one: %+v", s.name, site)
	}
	change, err := d.DisableDOF(expect.Value(d.Decode(text, s.at(off)))(t), k)
	if err != nil {
		if !errors.As(err, new(*arch.Refusal)) {
			t.Errorf("%s: %v", s.name, err)
		}
		return
	}
	if change.Target != arch.TargetNone {
		if k == arch.Probe || d.Traits().DOF.Tests {
			t.Errorf("%s: %+v", s.name, change)
		}
		return
	}
	if len(change.New) != len(s.code) || change.RecordedOffset < off || change.RecordedOffset-off >= uint64(len(s.code)) {
		t.Errorf("%s: %+v", s.name, change)
	}
	text.Code = bytes.Clone(text.Code)
	copy(text.Code[off-text.Start:], change.New)
	found, ok := d.DisabledDOF(text, field, k)
	if !ok || found.Offset != off || found.Form != s.form || found.GOT != s.got || !bytes.Equal(found.Code, change.New) {
		t.Errorf("%s as % x: found %+v, %v", s.name, change.New, found, ok)
	}
	if again, err := d.DisableDOF(found, k); err != nil || !bytes.Equal(again.New, change.New) || again.RecordedOffset != change.RecordedOffset {
		t.Errorf("%s: % x at %#x becomes % x at %#x, %v", s.name, change.New, change.RecordedOffset, again.New, again.RecordedOffset, err)
	}
	if k == arch.Probe || d.Traits().DOF.Tests {
		recorded, ok := d.RecordedDOF(text, change.RecordedOffset, k)
		if !ok || recorded.Offset != off || recorded.Form != s.form || !bytes.Equal(recorded.Code, change.New) {
			t.Errorf("%s as % x: %#x is of %+v, %v", s.name, change.New, change.RecordedOffset, recorded, ok)
		}
	}
	for other := range arch.Kinds {
		if _, ok := d.DisabledDOF(text, field, other); ok && other != k {
			t.Errorf("%s: % x is of both kinds", s.name, change.New)
		}
	}
}
