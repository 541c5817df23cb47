package machines_test

import (
	"bytes"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/arch/arm"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// eachOrder runs a test for each machine of the table, and for the same machines in files of
// another byte order.
func eachOrder(t *testing.T, test func(t *testing.T, m arch.Machine, c *cases)) {
	each(t, test)
	for _, m := range arm.Others {
		t.Run(fmt.Sprint(m.Traits().Name, m.Traits().ABIs[0].Data, bigCode(m)), func(t *testing.T) { test(t, m, readCases(t, m)) })
	}
}

// each runs a test for each machine of the table, with the machine's own cases.
func each(t *testing.T, test func(t *testing.T, m arch.Machine, c *cases)) {
	all := machines.All()
	if len(all) == 0 {
		t.Fatal("there is no machine")
	}
	for _, m := range all {
		t.Run(m.Traits().Name, func(t *testing.T) { test(t, m, readCases(t, m)) })
	}
}

// fillers are what stands around sites. Their length is a multiple of all alignments
// of instructions; what they begin and end with belongs to no disabled form.
var fillers = [][]byte{nil, bytes.Repeat([]byte{0}, 16), bytes.Repeat([]byte{0xff}, 16)}

// placed puts code between two fillers, and returns where it is.
func placed(code, filler []byte) (text arch.Text, off uint64) {
	const start = 0x100
	return arch.Text{Code: bytes.Join([][]byte{filler, code, filler}, nil), Start: start}, start + uint64(len(filler))
}

// at moves the relocations of a site to where the site is.
func (s *siteCase) at(off uint64) []elfreloc.Relocation {
	relocs := slices.Clone(s.relocs)
	for i := range relocs {
		relocs[i].Offset += off
	}
	return relocs
}

func (s *siteCase) mapped(text arch.Text) arch.Text {
	if s.encoding != arch.Unmapped {
		text.Map = []arch.Mapping{{Offset: 0, Encoding: s.encoding}}
	}
	return text
}

// asm shows code as if it were at 0x1000.
func asm(m arch.Machine, code []byte) string { return strings.Join(m.Disassemble(code, 0x1000), "; ") }

func TestSitesAreFound(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		forms := map[arch.Form]bool{}
		for _, s := range c.sites {
			forms[s.form] = true
			expect.Equal(t, s.asm, asm(m, s.code), "%s", s.name)
			for _, filler := range fillers {
				text, off := placed(s.code, filler)
				got, err := m.Decode(s.mapped(text), s.at(off))
				want := arch.Site{Offset: off, Form: s.form, GOT: s.got, Code: s.code}
				if diff := cmp.Diff(want, got); err != nil || diff != "" {
					t.Errorf("%s between % x: %v %s", s.name, filler, err, diff)
				}
			}
			expect.Equal(t, s.form != arch.Nop, m.Live(s.mapped(arch.Text{Code: s.code}), 0), "%s is live", s.name)
		}
		if !forms[arch.Call] || !forms[arch.Tail] || !forms[arch.Nop] {
			t.Error("the cases have no call, no tail call or no nop")
		}
	})
}

// Only the whole of a site is one, with its own relocations and none besides.
func TestSitesThatAreCutOffAreRefused(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		for _, s := range c.sites {
			relocs := s.at(0x100)
			for name, code := range map[string][]byte{"start": s.code[1:], "end": s.code[:len(s.code)-1], "all": nil} {
				text := s.mapped(arch.Text{Code: code, Start: 0x100})
				if name == "start" {
					text.Start++
				}
				wantRefusal(t, m, s, text, relocs, "cut off: "+name)
			}
			whole := s.mapped(arch.Text{Code: s.code, Start: 0x100})
			more := append(slices.Clone(relocs), relocs[0])
			wantRefusal(t, m, s, whole, more, "with a relocation more")
			if !relocs[0].Implicit {
				relocs[0].Addend += 8
				wantRefusal(t, m, s, whole, relocs, "of what is behind the stub")
			}
		}
	})
}

func wantRefusal(t *testing.T, m arch.Machine, s *siteCase, text arch.Text, relocs []elfreloc.Relocation, why string) {
	t.Helper()
	_, err := m.Decode(text, relocs)
	if !errors.As(err, new(*arch.Refusal)) {
		t.Errorf("%s, %s: got %v, want a refusal", s.name, why, err)
	}
}

func TestOthersAreRefused(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		if len(c.refused) == 0 {
			t.Error("the cases have none")
		}
		for _, s := range c.refused {
			_, err := m.Decode(s.mapped(arch.Text{Code: s.code}), s.relocs)
			if !errors.As(err, new(*arch.Refusal)) || err.Error() != s.refusal {
				t.Errorf("%s: got %v, want %s", s.name, err, s.refusal)
			}
		}
	})
}

// found returns what a function of a machine calls back with.
func found(code []byte, pc uint64, look func([]byte, uint64, func(at, to uint64))) map[uint64]uint64 {
	all := map[uint64]uint64{}
	look(code, pc, func(at, to uint64) { all[at] = to })
	return all
}

func TestBranchesAndSlots(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		if len(c.branches) == 0 || len(c.slots) == 0 {
			t.Error("the cases have no branches, or no slots")
		}
		for _, b := range c.branches {
			checkFound(t, m, b, m.Branches)
		}
		for _, b := range c.slots {
			checkFound(t, m, b, b.slotsOf(m))
		}
	})
}

// checkFound compares what is found, and that Sizes.Branch is enough for each.
func checkFound(t *testing.T, m arch.Machine, b *codeCase, look func([]byte, uint64, func(at, to uint64))) {
	t.Helper()
	if diff := cmp.Diff(b.wanted(), found(b.code, b.pc, look)); diff != "" || b.found == nil {
		t.Errorf("%s: %s", b.name, diff)
	}
	for at, to := range b.wanted() {
		part := b.code[at-b.pc:]
		part = part[:min(uint64(len(part)), m.Traits().Branch)]
		if got := found(part, at, look); got[at] != to {
			t.Errorf("%s: what is at %#x takes more than the %d bytes of Sizes.Branch", b.name, at, m.Traits().Branch)
		}
	}
}

// slotsOf is Slots of a machine with the case's global offset table.
func (b *codeCase) slotsOf(m arch.Machine) func([]byte, uint64, func(at, to uint64)) {
	return func(code []byte, pc uint64, f func(at, to uint64)) { m.Slots(code, pc, b.table, f) }
}

func (b *codeCase) wanted() map[uint64]uint64 {
	want := map[uint64]uint64{}
	for _, f := range b.found {
		want[f[0]] = f[1]
	}
	return want
}

// The entries of procedure linkage tables lead back to where they begin.
func TestEntriesOfLinkageTables(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		if len(c.entries) == 0 {
			t.Error("the cases have none")
		}
		used := map[uint64]bool{}
		for _, b := range c.entries {
			for start, slot := range b.wanted() {
				ok := false
				for at, to := range found(b.code, b.pc, b.slotsOf(m)) {
					if to == slot && slices.Contains(m.Traits().Entries, at-start) {
						ok, used[at-start] = true, true
					}
				}
				if !ok {
					t.Errorf("entry %s: none of Traits.Entries leads from where %#x is used to %#x", b.name, slot, start)
				}
			}
		}
		for _, back := range m.Traits().Entries {
			if !used[back] {
				t.Errorf("no entry begins %d bytes before its jump", back)
			}
		}
	})
}

func TestJumps(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		if len(c.jumps) == 0 {
			t.Error("the cases have none")
		}
		for _, b := range c.jumps {
			text := arch.Text{Code: b.code, Start: b.pc}
			for at, want := range b.wanted() {
				if to, ok := m.Branch(text, at); to != want || !ok {
					t.Errorf("%#x: got %#x, %v, want %#x", at, to, ok, want)
				}
				if _, ok := m.Branch(arch.Text{Code: b.code[:at-b.pc+1], Start: b.pc}, at); ok {
					t.Errorf("%#x: found by its first byte", at)
				}
			}
		}
		for _, b := range c.dead {
			if to, ok := m.Branch(arch.Text{Code: b.code}, 0); ok {
				t.Errorf("%s jumps to %#x", b.name, to)
			}
		}
	})
}

// Loads of semaphores are read with what stands around them or without, whole or not at
// all, and nothing else is taken for one.
func TestLoads(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		if len(c.loads) == 0 {
			t.Error("the cases have none")
		}
		for _, b := range c.loads {
			for at, want := range b.wanted() {
				for _, filler := range fillers {
					text := arch.Text{Code: bytes.Join([][]byte{filler, b.code, filler}, nil), Start: b.pc - uint64(len(filler))}
					if addr, ok := m.LoadedSemaphore(text, at); addr != want || !ok {
						t.Errorf("%s between % x: got %#x, %v, want %#x", b.name, filler, addr, ok, want)
					}
				}
				code := b.code[at-b.pc:]
				if n := m.Traits().Load; uint64(len(code)) > n {
					code = code[:n]
				}
				if addr, ok := m.LoadedSemaphore(arch.Text{Code: code, Start: at}, at); addr != want || !ok {
					t.Errorf("%s takes more than the %d bytes of Sizes.Load", b.name, m.Traits().Load)
				}
			}
		}
		for _, all := range [][]*codeCase{c.dead, c.live, c.jumps} {
			for _, b := range all {
				if addr, ok := m.LoadedSemaphore(arch.Text{Code: b.code, Start: b.pc}, b.pc); ok {
					t.Errorf("%s loads from %#x", b.name, addr)
				}
			}
		}
	})
}

func TestLive(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		if len(c.live) == 0 || len(c.dead) == 0 {
			t.Error("the cases have nothing live, or nothing dead")
		}
		for _, filler := range fillers {
			for live, all := range map[bool][]*codeCase{true: c.live, false: c.dead} {
				for _, b := range all {
					text, off := placed(b.code, filler)
					expect.Equal(t, live, m.Live(text, off), "%s between % x: live", b.name, filler)
				}
			}
		}
	})
}

// kindNames are what cases call kinds.
var kindNames = [arch.Kinds]string{arch.Probe: "probe", arch.Enabled: "enabled"}

// Code is taken for disabled sites of the kinds that the cases name, and of no other.
func TestCodeIsTakenForDisabled(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		for _, l := range c.taken {
			var got []string
			for k := range arch.Kinds {
				if _, ok := m.Disabled(arch.Text{Code: l.code}, 0, k); ok {
					got = append(got, kindNames[k])
				}
			}
			expect.Equal(t, l.want, strings.Join(got, " "), "% x is taken for", l.code)
		}
	})
}

// What is not an instruction is shown as data.
func TestCodeIsShown(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		for _, l := range c.shown {
			expect.Equal(t, l.want, asm(m, l.code), "% x is shown as", l.code)
		}
	})
}

// TestDisassembleAtOnce has several goroutines disassemble, which the race detector judges: decoders of
// golang.org/x/arch write package-level variables.
func TestDisassembleAtOnce(t *testing.T) {
	for _, m := range machines.All() {
		t.Run(m.Traits().Name, func(t *testing.T) {
			code := make([]byte, 64)
			for i := range code {
				code[i] = byte(i * 37)
			}
			want := len(m.Disassemble(code, 0))
			var running sync.WaitGroup
			for range 4 {
				running.Go(func() {
					for range 100 {
						if got := len(m.Disassemble(code, 0)); got != want {
							t.Errorf("%d instructions, want %d", got, want)
						}
					}
				})
			}
			running.Wait()
		})
	}
}

// numbers returns numbers of some bytes each as the bytes that a machine has of them.
func numbers(t testing.TB, value string, size int, big bool) string {
	t.Helper()
	b, err := unhex(value)
	if err != nil || len(b)%size != 0 {
		t.Fatalf("%s are not numbers of %d bytes: %v", value, size, err)
	}
	for i := 0; !big && i < len(b); i += size {
		slices.Reverse(b[i : i+size])
	}
	return hex.EncodeToString(b)
}

// bigCode reports whether a machine's code is big-endian. That of Arm's BE8 is not, though its data
// is: its instructions are those of the little-endian machine.
func bigCode(m arch.Machine) bool {
	return m.Traits().ABIs[0].Data == elf.ELFDATA2MSB && !slices.ContainsFunc(machines.All(), func(other arch.Machine) bool {
		return packageOf(other) == packageOf(m) && other.Traits().ABIs[0].Data == elf.ELFDATA2LSB &&
			bytes.Equal(other.Traits().HelperMark.Code, m.Traits().HelperMark.Code)
	})
}
