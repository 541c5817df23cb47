package links

import (
	"debug/elf"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
)

// followDescriptors gives functions the addresses of their code, where their symbols stand
// for descriptors.
func (im *image) followDescriptors(t *testing.T) {
	t.Helper()
	if im.file.Type == elf.ET_REL {
		return
	}
	for i := range im.symbols {
		s := &im.symbols[i]
		if in := int(s.Section); elf.ST_TYPE(s.Info) == elf.STT_FUNC && in < len(im.file.Sections) && im.file.Sections[in].Name == ".opd" {
			s.Value = im.word(t, s.Value).value
		}
	}
}

// firstAddress matches the address of a branch's target.
var firstAddress = regexp.MustCompile(`^([0-9a-f]+) <`)

// throughTOC returns the name of the stub whose address the code that a branch leads to
// loads from the table of contents, as code that linkers write does, or the empty string.
func (im *image) throughTOC(t *testing.T, operands string) string {
	t.Helper()
	match := firstAddress.FindStringSubmatch(operands)
	got := im.file.Section(".got")
	if im.file.Machine != elf.EM_PPC64 || match == nil || im.file.Section(".dynsym") == nil {
		return ""
	}
	to := expect.Value(strconv.ParseUint(match[1], 16, 64))(t, "%s: %q", im.path, operands)
	if to == 0 {
		return "" // what is weak, and nowhere
	}
	insn := func(i uint64) uint32 { return im.file.ByteOrder.Uint32(im.bytes(t, to+4*i, 4)) }
	low := func(i uint32) uint64 { return uint64(int64(int16(i))) }
	first, second, third := insn(0), insn(1), insn(2)
	slot := uint64(0)
	switch {
	case first>>16 == 0x0410 && second>>16 == 0xe580: // pld r12, slot
		slot = to + uint64(int64(first)<<46>>30|int64(second&0xffff))
	case first>>16 != 0xf841 || got == nil: // std r2, n(r1)
		return ""
	case second>>16 == 0xe982: // ld r12, slot(r2)
		slot = got.Addr + 0x8000 + low(second)
	case second>>26 == 15 && (third>>26 == 58 || third>>26 == 14): // addis r12, r2, slot@ha; ld or addi
		slot = got.Addr + 0x8000 + low(second)<<16 + low(third)
	}
	return im.slots(t)[slot]
}

// slots returns the names of what the loader puts into the slots of calls.
func (im *image) slots(t *testing.T) map[uint64]string {
	t.Helper()
	names := expect.Value(im.file.DynamicSymbols())(t, "%s", im.path)
	slots := map[uint64]string{}
	for _, s := range im.file.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		data := expect.Value(s.Data())(t, "%s: %s", im.path, s.Name)
		for ; len(data) >= 24; data = data[24:] {
			if info := im.number(data[8:16]); elf.R_PPC64(uint32(info)) == elf.R_PPC64_JMP_SLOT && info>>32 != 0 {
				slots[im.number(data[:8])] = names[info>>32-1].Name
			}
		}
	}
	return slots
}

// power10 is ppc64le with the linkers that know code for power10: not mold, nor gold, which
// restores no pointer to the table of contents behind calls of such code. What it links of
// gcc 14's does not run unconverted either.
var power10 = func() *machine {
	m := *ppc64le
	m.linkers = slices.DeleteFunc(slices.Clone(m.linkers), func(l toolchains.Linker) bool { return l.Family == "mold" || l.Family == "gold" })
	return &m
}()

// TestPower10 links code that names places by their distance, which has tail calls and no
// slots for the pointer to the table of contents, with code that has none and all.
func TestPower10(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(power10, toolchains.Clang, "-Os", "-mcpu=pwr10"),
		{machine: power10, cc: toolchains.GCC, flags: []string{"-O2", "-fPIC"}, calls: []string{"-mcpu=power10"}},
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}
