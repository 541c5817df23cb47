package machines

import (
	"debug/elf"
	"strings"

	"sdtconvert/elfreloc"
)

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
