package machines

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// conventionsOnly are machines whose conventions are known, and whose instructions are not. If one becomes a Machine,
// its line moves to its Traits.
var conventionsOnly = []struct {
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
	for i := range conventionsOnly {
		if conventionsOnly[i].Matches(wanted.Machine, wanted.Class, wanted.Data, wanted.Flags) {
			return conventionsOnly[i].Conventions
		}
	}
	return arch.Conventions{}
}
