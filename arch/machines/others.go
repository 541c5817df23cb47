package machines

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// others are machines of which no more is known than their conventions. One that gets
// a directory of its own takes its line here along, to its Traits.
var others = []struct {
	arch.ABI
	arch.Conventions
}{
	// MIPS16 and microMIPS functions are odd where st_other does not say so.
	{arch.ABI{Machine: elf.EM_MIPS, Class: elf.ELFCLASS32}, arch.Conventions{Mode: 1}},
	{arch.ABI{Machine: elf.EM_MIPS, Class: elf.ELFCLASS64}, arch.Conventions{Mode: 1}},
	// x32: x86-64 psABI, chapter 10.
	{arch.ABI{Machine: elf.EM_X86_64, Class: elf.ELFCLASS32}, arch.Conventions{
		UnwindTypes: []elf.SectionType{elf.SHT_LOPROC + 1}, // SHT_X86_64_UNWIND
	}},
}

// Conventions returns what is known of how functions are found in an object or image.
func Conventions(wanted elfreloc.ABI) arch.Conventions {
	if m := Lookup(wanted); m != nil {
		return m.Traits().Conventions
	}
	for i := range others {
		if others[i].Matches(wanted.Machine, wanted.Class, wanted.Data, wanted.Flags) {
			return others[i].Conventions
		}
	}
	return arch.Conventions{}
}
