package machines

import (
	"debug/elf"
	"strings"

	"sdtconvert/elfreloc"
)

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
