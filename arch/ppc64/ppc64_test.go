package ppc64

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"golang.org/x/arch/ppc64/ppc64asm"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/expect"
)

// all are the machines of this directory.
var all = []Machine{ELFv1, ELFv2, Little}

// A site that goes to a helper keeps the type of its relocation, which tells linkers
// whether code between the two may use the table of contents.
func TestHelpersAreReachedAsStubsWere(t *testing.T) {
	for typ, want := range map[elf.R_PPC64]elf.R_PPC64{
		elf.R_PPC64_REL24:         elf.R_PPC64_REL24,
		elf.R_PPC64_REL24_NOTOC:   elf.R_PPC64_REL24_NOTOC,
		elf.R_PPC64_REL24_P9NOTOC: elf.R_PPC64_REL24_P9NOTOC,
		elf.R_PPC64_NONE:          elf.R_PPC64_REL24, // the default
	} {
		for _, form := range []arch.Form{arch.Call, arch.Tail} {
			site := arch.Site{Offset: 8, Form: form, Code: ELFv2.code(insnBL)}
			c, err := ELFv2.Disable(site, arch.Enabled, arch.Context{SemaphoreBytes: 2, Reloc: uint32(typ)})
			if err != nil || elf.R_PPC64(c.Reloc.Type) != want || c.Reloc.Offset != 8 || c.Reloc.Addend != 0 {
				t.Errorf("%v: %+v, %v", typ, c, err)
			}
		}
	}
}

func TestDisabledIsNothingElse(t *testing.T) {
	for insn, kinds := range map[uint32]string{
		insnNop:    "0",
		0x60210000: "", // ori r1, r1, 0: another NOP
		0x60000001: "",
		insnRet:    "0",
		0x4e800021: "", // blrl
		0x4e800420: "", // bctr
		0x4d820020: "", // beqlr
		insnZero:   "1",
		0x38600001: "", // li r3, 1
		0x38800000: "", // li r4, 0
		0x3c600000: "", // lis r3, 0
		insnB:      "1",
		0x4bfffffc: "1",
		insnBL:     "1",
		0x48000002: "", // ba
		0x41820010: "", // beq
		0x7fe00008: "", // trap
	} {
		for _, m := range all {
			got := ""
			for k := range arch.Kinds {
				if _, ok := m.Disabled(arch.Text{Code: m.code(insn)}, 0, k); ok {
					got += fmt.Sprint(k)
				}
			}
			expect.Equal(t, kinds, got, "%08x: kinds", insn)
		}
	}
}

// A helper that was changed in one bit, but for those of the distance, loads nothing.
func TestLoadIsAsItWasMade(t *testing.T) {
	for _, m := range all {
		code := m.code(load[:]...)
		for bit := range 8 * len(code) {
			code[bit/8] ^= 1 << (bit % 8)
			changed := m.insn(code[bit/8/insnLen*insnLen:]) ^ load[bit/8/insnLen]
			at := bit / 8 / insnLen * insnLen
			distance := (at == highAt || at == lowAt) && changed&0xffff != 0
			if addr, ok := m.LoadedSemaphore(arch.Text{Code: code}, 0); ok != distance || ok && addr == hereAt {
				t.Errorf("bit %d of %d: %#x, %v", bit, m, addr, ok)
			}
			code[bit/8] ^= 1 << (bit % 8)
		}
	}
}

// The decoder of golang.org/x/arch shows the same, but for the targets of b and bl, and the
// operands of bcl.
func TestDisassembleIsThatOfOthers(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	known := []uint32{insnNop, insnRet, insnMFLR0, insnMFLR3, insnMTLR0, insnZero, insnADDIS, insnLHZ, insnB, insnHere}
	shown := 0
	for range 200_000 {
		insn := known[r.IntN(len(known))] ^ 1<<r.IntN(32)&r.Uint32()
		code := ELFv2.code(insn)
		got := strings.Join(ELFv2.Disassemble(code, 0x1000), "; ")
		if strings.HasPrefix(got, ".long") {
			continue
		}
		inst, err := ppc64asm.Decode(code, binary.BigEndian)
		if err != nil {
			t.Fatalf("%08x is %s, and to others %v", insn, got, err)
		}
		want := ppc64asm.GNUSyntax(inst, 0x1000)
		if opcode(insn) == opB || insn == insnHere {
			got, _, _ = strings.Cut(got, " ")
			want, _, _ = strings.Cut(want, " ")
		}
		if shown++; got != want {
			t.Fatalf("%08x is %s, and to others %s", insn, got, want)
		}
	}
	if shown < 1000 {
		t.Errorf("%d instructions were compared", shown)
	}
}
