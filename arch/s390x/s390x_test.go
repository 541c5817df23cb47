package s390x

import (
	"bytes"
	"debug/elf"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/s390x/s390xasm"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// branchCode is brcl, or brasl, with a distance of 0.
func branchCode(op, half byte) []byte { return []byte{0xc0, half<<4 | op, 0, 0, 0, 0} }

// Each condition is inverted, and those that are none are not conditional tail calls.
func TestConditions(t *testing.T) {
	for condition := range byte(16) {
		code := branchCode(4, condition)
		site, err := Machine{}.Decode(arch.Text{Code: code}, []elfreloc.Relocation{{Offset: 2, Type: uint32(elf.R_390_PLT32DBL), Addend: 2}})
		if condition == never {
			if err == nil {
				t.Error("a branch that is never taken is a site")
			}
			continue
		}
		if want := map[bool]arch.Form{true: arch.Tail, false: arch.CondTail}[condition == always]; err != nil || site.Form != want {
			t.Errorf("condition %d: %v, %v", condition, site.Form, err)
		}
		if site.Form != arch.CondTail {
			continue
		}
		c, err := Machine{}.Disable(site, arch.Probe, arch.Context{})
		want := []byte{0xa7, (15-condition)<<4 | 4, 0, 3, 0x07, 0xfe}
		if err != nil || !bytes.Equal(c.New, want) || c.RecordedOffset != 4 {
			t.Errorf("condition %d: % x with the record at %d, %v", condition, c.New, c.RecordedOffset, err)
		}
		c, err = Machine{}.Disable(site, arch.Enabled, arch.Context{})
		if err != nil || !bytes.Equal(c.New, code) || c.RecordedOffset != 0 || c.Target != arch.TargetHelper {
			t.Errorf("condition %d of a test: %+v, %v", condition, c, err)
		}
	}
}

// A call links through the register of the ABI, or that of -mfentry.
func TestLinkRegisters(t *testing.T) {
	for reg := range byte(16) {
		_, err := Machine{}.Decode(arch.Text{Code: branchCode(5, reg)}, []elfreloc.Relocation{{Offset: 2, Type: uint32(elf.R_390_PLT32DBL), Addend: 2}})
		if ok := reg == 14 || reg == 0; ok != (err == nil) {
			t.Errorf("%%r%d: %v", reg, err)
		}
	}
}

// branches are the mnemonics of GNU that the decoder of golang.org/x/arch lacks.
var branches = strings.NewReplacer(
	"bcr 3,", "bnler ", "bcr 5,", "bnher ", "bcr 6,", "blhr ", "bcr 9,", "bnlhr ", "bcr 10,", "bher ", "bcr 12,", "bler ",
	"brc 3,", "jnle ", "brc 5,", "jnhe ", "brc 6,", "jlh ", "brc 9,", "jnlh ", "brc 10,", "jhe ", "brc 12,", "jle ",
	"brcl 3,", "jgnle ", "brcl 5,", "jgnhe ", "brcl 6,", "jglh ", "brcl 9,", "jgnlh ", "brcl 10,", "jghe ", "brcl 12,", "jgle ",
)

// The decoder of golang.org/x/arch shows the same.
func TestDisassembleIsThatOfOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	heads := []byte{0xc0, 0xc4, 0xa7, 0x07}
	shown := map[string]int{}
	for range 200_000 {
		code := make([]byte, 6)
		for i := range code {
			code[i] = byte(r.Uint32())
		}
		code[0] = heads[r.IntN(len(heads))]
		code = code[:length(code[0])]
		got := show(code, 0x100000000)
		if strings.HasPrefix(got, ".short") {
			continue
		}
		inst, err := s390xasm.Decode(code)
		if err != nil {
			t.Fatalf("% x is %s, and to others %v", code, got, err)
		}
		if want := branches.Replace(s390xasm.GNUSyntax(inst, 0x100000000)); got != want {
			t.Fatalf("% x is %s, and to others %s", code, got, want)
		}
		name, _, _ := strings.Cut(got, " ")
		shown[name]++
	}
	if len(shown) < 40 {
		t.Errorf("%v were compared", shown)
	}
}
