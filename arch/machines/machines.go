// Package machines is the one table from an object's header to what is known of
// its machine.
package machines

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/arm"
	"sdtconvert/arch/arm64"
	"sdtconvert/arch/i386"
	"sdtconvert/arch/loong64"
	"sdtconvert/arch/ppc64"
	"sdtconvert/arch/riscv64"
	"sdtconvert/arch/s390x"
	"sdtconvert/elfreloc"
)

// supported are the machines that probes can be disabled for, a line for each.
var supported = []arch.Machine{
	amd64.Machine,
	arm.Machine{},
	arm64.Machine{},
	i386.Machine,
	loong64.Machine{},
	ppc64.ELFv1,
	ppc64.ELFv2,
	ppc64.Little,
	riscv64.Machine{},
	s390x.Machine{},
}

// variants are the supported machines, and the variants of them that another byte order makes.
var variants = slices.Concat(supported, arm.Others)

// All returns the machines, for tests.
func All() []arch.Machine { return supported }

// Lookup returns the Machine for an object's ABI, or nil when there is none. ABIs of several
// machines share an e_machine, as x32 does with that of x86-64.
func Lookup(wanted elfreloc.ABI) arch.Machine {
	for _, m := range variants {
		for _, abi := range m.Traits().ABIs {
			if abi.Matches(wanted.Machine, wanted.Class, wanted.Data, wanted.Flags) {
				return m
			}
		}
	}
	return nil
}

// Unsupported names what the header of an object says that Lookup has no Machine for, as far
// as it matters: byte order and flags where another ABI of the same e_machine is known.
func Unsupported(wanted elfreloc.ABI) string {
	for _, m := range supported {
		for _, abi := range m.Traits().ABIs {
			if abi.Machine == wanted.Machine && abi.Class == wanted.Class {
				return fmt.Sprintf("%v of class %v, %v and e_flags %#x", wanted.Machine, wanted.Class, wanted.Data, wanted.Flags)
			}
		}
	}
	return fmt.Sprintf("%v of class %v", wanted.Machine, wanted.Class)
}

// targets are the machines that objects of data alone can be made for from a name: the
// first part of a triplet, or GOARCH. The flags are those of the usual ABI of Linux.
var targets = []struct {
	names []string
	elfreloc.ABI
	narrow string // the machine of the same family with addresses of 32 bits
}{
	{[]string{"x86_64", "amd64"}, elfreloc.ABI{Machine: elf.EM_X86_64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB}, "i386"},
	{[]string{"i386", "i486", "i586", "i686", "386"}, elfreloc.ABI{Machine: elf.EM_386, Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB}, "i386"},
	{[]string{"aarch64", "arm64"}, elfreloc.ABI{Machine: elf.EM_AARCH64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB}, "arm"},
	{[]string{"aarch64_be"}, elfreloc.ABI{Machine: elf.EM_AARCH64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB}, ""},
	{[]string{"arm", "armv5l", "armv6l", "armv7l", "armv7", "armv7a", "armv7hl"}, // EABI version 5
		elfreloc.ABI{Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB, Flags: 5 << 24}, "arm"},
	{[]string{"riscv64"}, // EF_RISCV_FLOAT_ABI_DOUBLE
		elfreloc.ABI{Machine: elf.EM_RISCV, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Flags: 4}, ""},
	{[]string{"powerpc64le", "ppc64le"}, elfreloc.ABI{Machine: elf.EM_PPC64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Flags: 2}, ""},
	{[]string{"powerpc64", "ppc64"}, elfreloc.ABI{Machine: elf.EM_PPC64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB, Flags: 1}, "powerpc"},
	{[]string{"powerpc", "ppc"}, elfreloc.ABI{Machine: elf.EM_PPC, Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB}, "powerpc"},
	{[]string{"s390x"}, elfreloc.ABI{Machine: elf.EM_S390, Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB}, ""},
	{[]string{"loongarch64", "loong64"}, // LP64D, version 1 of the ABI of objects
		elfreloc.ABI{Machine: elf.EM_LOONGARCH, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Flags: 0x43}, ""},
}

// Target returns the ABI of a machine that a triplet, its first part or GOARCH names.
func Target(name string) (abi elfreloc.ABI, ok bool) {
	cpu, _, _ := strings.Cut(name, "-")
	for i := range targets {
		for _, n := range targets[i].names {
			if n == cpu {
				return targets[i].ABI, true
			}
		}
	}
	return elfreloc.ABI{}, false
}

// OfClass returns the ABI of the family of a Target with addresses of another size.
func OfClass(abi elfreloc.ABI, class elf.Class) (sibling elfreloc.ABI, ok bool) {
	if abi.Class == class {
		return abi, true
	}
	for i := range targets {
		switch t := &targets[i]; {
		case class == elf.ELFCLASS32 && t.ABI == abi && t.narrow != "":
			return Target(t.narrow)
		case class == elf.ELFCLASS64 && t.Class == class && t.narrow != "":
			if narrow, _ := Target(t.narrow); narrow == abi {
				return t.ABI, true
			}
		}
	}
	return elfreloc.ABI{}, false
}

// formats are the names that linker scripts have for formats of objects (OUTPUT_FORMAT).
var formats = map[string]elfreloc.ABI{
	"elf32-bigarm":        {Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB, Machine: elf.EM_ARM},
	"elf32-i386":          {Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB, Machine: elf.EM_386},
	"elf32-littlearm":     {Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB, Machine: elf.EM_ARM},
	"elf32-powerpc":       {Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB, Machine: elf.EM_PPC},
	"elf32-s390":          {Class: elf.ELFCLASS32, Data: elf.ELFDATA2MSB, Machine: elf.EM_S390},
	"elf32-x86-64":        {Class: elf.ELFCLASS32, Data: elf.ELFDATA2LSB, Machine: elf.EM_X86_64},
	"elf64-bigaarch64":    {Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB, Machine: elf.EM_AARCH64},
	"elf64-littleaarch64": {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_AARCH64},
	"elf64-littleriscv":   {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_RISCV},
	"elf64-loongarch":     {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_LOONGARCH},
	"elf64-powerpc":       {Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB, Machine: elf.EM_PPC64},
	"elf64-powerpcle":     {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_PPC64},
	"elf64-s390":          {Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB, Machine: elf.EM_S390},
	"elf64-x86-64":        {Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB, Machine: elf.EM_X86_64},
}

// OfFormat returns what of an ABI the name of a format tells: all but the flags.
func OfFormat(name string) (abi elfreloc.ABI, ok bool) {
	abi, ok = formats[strings.TrimSuffix(name, "-freebsd")]
	return abi, ok
}

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
