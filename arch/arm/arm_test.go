package arm

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/arch/arm/armasm"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	return expect.Value(hex.DecodeString(s))(t)
}

// An is-enabled tail call that may be in an IT block goes to the helper, from as far as such a
// block may begin; of what is like one all count.
func TestTailCallsInITBlocks(t *testing.T) {
	site := unhex(t, "fff7febf")
	for back := 2; back <= 20; back += 2 {
		for it, in := range map[string]bool{"08bf": true, "1ebf": true, "00bf": false, "08be": false, "0abf": true} {
			text := arch.Text{Code: bytes.Repeat([]byte{0}, 20)}
			text.Code = append(text.Code, site...)
			copy(text.Code[20-back:], unhex(t, it))
			relocs := []elfreloc.Relocation{{Offset: 20, Type: uint32(elf.R_ARM_THM_JUMP24), Implicit: true}}
			s := expect.Value(Machine{}.Decode(text, relocs))(t)
			c := expect.Value(Machine{}.Disable(s, arch.Enabled, arch.Context{Text: text}))(t)
			if helper := c.Target == arch.TargetHelper; helper != (in && back <= itReach) {
				t.Errorf("%s %d bytes before: goes to the helper: %v", it, back, helper)
			}
		}
	}
}

// attributes returns a section with Tag_CPU_arch behind other tags, as assemblers write
// it.
func attributes(o order, arch byte) []byte {
	tags := append([]byte("\x05name\x00"), tagCPUArch, arch, 9, 2)
	size := func(n int) []byte { return o.data(uint32(n)) }
	file := append([]byte{tagFile}, size(5+len(tags))...)
	file = append(file, tags...)
	vendor := append([]byte("aeabi\x00"), file...)
	all := append([]byte{'A'}, size(4+len(vendor))...)
	return append(all, vendor...)
}

// data returns the bytes of a word of data.
func (o order) data(v uint32) []byte {
	if o == little {
		return []byte{byte(v), byte(v >> 8), byte(v >> 16), byte(v >> 24)}
	}
	return []byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)}
}

// What ARMv6T2 brought is not used for processors before it.
func TestOldProcessors(t *testing.T) {
	for _, o := range []order{little, big} {
		for arch, want := range map[byte]string{4: "v5TE", 6: "v6", 9: "v6K", 11: "v6-M", 8: "", 10: "", 14: "", 22: ""} {
			section := attributes(o, arch)
			if got := o.beforeT2(section); got != want {
				t.Errorf("%d is %q, want %q", arch, got, want)
			}
			for n := range section { // cut off anywhere
				if got := o.beforeT2(section[:n]); got != "" {
					t.Errorf("%d bytes are %q", n, got)
				}
			}
		}
	}
	text := arch.Text{Code: unhex(t, "feffffeb"), Attributes: attributes(little, 4)}
	c, err := Machine{}.Disable(arch.Site{Code: text.Code}, arch.Probe, arch.Context{Text: text})
	if err != nil || !bytes.Equal(c.New, unhex(t, "0000a0e1")) { // mov r0, r0
		t.Errorf("% x, %v", c.New, err)
	}
	if s, ok := (Machine{}).Disabled(arch.Text{Code: c.New}, 0, arch.Probe); !ok || s.Form != arch.Call {
		t.Errorf("%+v, %v", s, ok)
	}
	_, err = Machine{}.Disable(arch.Site{Code: text.Code}, arch.Enabled, arch.Context{Text: text, SemaphoreBytes: 2})
	wantRefusal(t, err, "got an is-enabled test of a semaphore, for v5TE (.ARM.attributes, Tag_CPU_arch), which has no movw; compile for ARMv6T2 or later")
	text.Code = unhex(t, "fff7feff")
	_, err = Machine{}.Decode(text, []elfreloc.Relocation{{Type: uint32(elf.R_ARM_THM_PC22), Implicit: true}})
	wantRefusal(t, err, "got Thumb of v5TE (.ARM.attributes, Tag_CPU_arch), which has no nop.w; compile for ARMv6T2 or later, or with -marm")
}

func wantRefusal(t *testing.T, err error, want string) {
	t.Helper()
	if !errors.As(err, new(*arch.Refusal)) || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

// Branches of Thumb are like some of A32: what goes less far is meant. objdump tells where
// they go.
func TestBranchesOfBothSets(t *testing.T) {
	for code, want := range map[string]uint64{
		"00f000ba": 0x10404,    // b.w, and not blt 0x4c008
		"00f0feff": 0x11000,    // bl, which is not an instruction of A32
		"fffff7ea": 0xffe10004, // b, which is none of Thumb
		"fff7feea": 0xf600,     // blx, and not b 0xfffce004
		"fef7f0eb": 0xe7e4,     // blx, and not bl 0xffc4e000
		"00f002e8": 0x10008,    // blx, which is not a branch of A32
	} {
		if to, ok := (Machine{}).Branch(arch.Text{Code: unhex(t, code), Start: 0x10000}, 0x10000); !ok || to != want {
			t.Errorf("%s goes to %#x, %v, want %#x", code, to, ok, want)
		}
	}
}

// What is shown of A32 is what the decoder of golang.org/x/arch reads, with every condition;
// but it has no name for the nop of all processors, and shows distances.
func TestDisassembleA32(t *testing.T) {
	const pc = 0x1000
	for _, insn := range []uint32{nop, oldNop, ret, zero, bA32, blA32, addPC, ldrh, withImmediate(movw, 0x1234), withImmediate(movt, -16)} {
		for cond := range uint32(never) {
			var code [insnLen]byte
			binary.LittleEndian.PutUint32(code[:], insn&anyCondition|cond<<28)
			inst := expect.Value(armasm.Decode(code[:], armasm.ModeARM))(t, "% x", code)
			want := armasm.GNUSyntax(inst)
			if rel, ok := inst.Args[0].(armasm.PCRel); ok {
				name, _, _ := strings.Cut(want, " ")
				want = fmt.Sprintf("%s 0x%x", name, pc+aheadA32+int64(rel))
			}
			if insn == oldNop {
				want = strings.Replace(strings.TrimSuffix(want, " r0, r0"), "mov", "nop", 1)
			}
			if got := (Machine{}).Disassemble(code[:], pc); len(got) != 1 || got[0] != want {
				t.Errorf("% x is %q, want %s", code, got, want)
			}
		}
	}
}
