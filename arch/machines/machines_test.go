package machines_test

import (
	"debug/elf"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

const little, big = elf.ELFDATA2LSB, elf.ELFDATA2MSB

func TestLookupTellsMachinesAndClassesApart(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		class   elf.Class
		data    elf.Data
		flags   uint32
		want    string // "" for none
	}{
		{elf.EM_X86_64, elf.ELFCLASS64, little, 0, "amd64"},
		{elf.EM_AARCH64, elf.ELFCLASS64, little, 0, "arm64"},
		{elf.EM_AARCH64, elf.ELFCLASS64, big, 0, "arm64"},
		{elf.EM_LOONGARCH, elf.ELFCLASS64, little, 0x43, "loong64"}, // double floats
		{elf.EM_LOONGARCH, elf.ELFCLASS64, little, 0x41, "loong64"}, // soft floats
		{elf.EM_LOONGARCH, elf.ELFCLASS64, little, 0, "loong64"},    // images of mold 2
		{elf.EM_LOONGARCH, elf.ELFCLASS64, little, 0x03, ""},        // version 0 of the ABI of objects
		{elf.EM_LOONGARCH, elf.ELFCLASS32, little, 0x43, ""},        // ILP32
		{elf.EM_PPC64, elf.ELFCLASS64, big, 0, "ppc64"},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 1, "ppc64"},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 2, "ppc64"},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 3, ""},
		{elf.EM_PPC64, elf.ELFCLASS64, little, 0, "ppc64le"},
		{elf.EM_PPC64, elf.ELFCLASS64, little, 1, ""}, // ELFv1
		{elf.EM_PPC64, elf.ELFCLASS64, little, 2, "ppc64le"},
		{elf.EM_RISCV, elf.ELFCLASS64, little, 5, "riscv64"}, // with C, and double floats
		{elf.EM_X86_64, elf.ELFCLASS32, little, 0, ""},       // x32
		{elf.EM_X86_64, elf.ELFCLASS64, big, 0, ""},
		{elf.EM_AARCH64, elf.ELFCLASS32, little, 0, ""}, // ILP32
		{elf.EM_RISCV, elf.ELFCLASS32, little, 0, ""},   // RV32
		{elf.EM_ARM, elf.ELFCLASS32, little, 0x5000400, "arm"},
		{elf.EM_ARM, elf.ELFCLASS32, big, 0x5000000, "arm"},
		{elf.EM_ARM, elf.ELFCLASS32, big, 0x5800000, "arm"}, // BE8
		{elf.EM_ARM, elf.ELFCLASS32, little, 0x4000000, ""}, // EABI version 4
		{elf.EM_SPARC, elf.ELFCLASS32, big, 0, ""},
		{elf.EM_NONE, elf.ELFCLASSNONE, elf.ELFDATANONE, 0, ""},
	} {
		got := ""
		m := machines.Lookup(elfreloc.ABI{Machine: c.machine, Class: c.class, Data: c.data, Flags: c.flags})
		if m != nil {
			got = m.Traits().Name
		}
		expect.Equal(t, c.want, got, "%v of %v, %v and flags %#x", c.machine, c.class, c.data, c.flags)
	}
}

// What is not known is named as far as it differs from what is.
func TestUnsupported(t *testing.T) {
	for want, got := range map[string]string{
		"EM_SPARC of class ELFCLASS32":                                  machines.Unsupported(elfreloc.ABI{Machine: elf.EM_SPARC, Class: elf.ELFCLASS32, Data: big, Flags: 3}),
		"EM_RISCV of class ELFCLASS32":                                  machines.Unsupported(elfreloc.ABI{Machine: elf.EM_RISCV, Class: elf.ELFCLASS32, Data: little, Flags: 4}),
		"EM_LOONGARCH of class ELFCLASS64, ELFDATA2LSB and e_flags 0x3": machines.Unsupported(elfreloc.ABI{Machine: elf.EM_LOONGARCH, Class: elf.ELFCLASS64, Data: little, Flags: 3}),
		"EM_ARM of class ELFCLASS32, ELFDATA2LSB and e_flags 0x4000000": machines.Unsupported(elfreloc.ABI{Machine: elf.EM_ARM, Class: elf.ELFCLASS32, Data: little, Flags: 0x4000000}),
		"EM_X86_64 of class ELFCLASS64, ELFDATA2MSB and e_flags 0x0":    machines.Unsupported(elfreloc.ABI{Machine: elf.EM_X86_64, Class: elf.ELFCLASS64, Data: big, Flags: 0}),
	} {
		expect.Equal(t, want, got)
	}
}

func TestConventionsOfMachinesWithAndWithoutProbes(t *testing.T) {
	for _, c := range []struct {
		machine     elf.Machine
		class       elf.Class
		data        elf.Data
		flags       uint32
		mode        uint64
		descriptors string
		unwind      int
	}{
		{elf.EM_ARM, elf.ELFCLASS32, little, 0x5000000, 1, "", 1},
		{elf.EM_ARM, elf.ELFCLASS32, big, 0x5000000, 1, "", 1},
		{elf.EM_MIPS, elf.ELFCLASS64, little, 0, 1, "", 0},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 0, 0, ".opd", 0},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 1, 0, ".opd", 0},
		{elf.EM_PPC64, elf.ELFCLASS64, big, 2, 0, "", 0},
		{elf.EM_PPC64, elf.ELFCLASS64, little, 2, 0, "", 0},
		{elf.EM_X86_64, elf.ELFCLASS64, little, 0, 0, "", 1},
		{elf.EM_X86_64, elf.ELFCLASS32, little, 0, 0, "", 1},
		{elf.EM_SPARC, elf.ELFCLASS32, big, 0, 0, "", 0},
	} {
		got := machines.Conventions(elfreloc.ABI{Machine: c.machine, Class: c.class, Data: c.data, Flags: c.flags})
		if got.Mode != c.mode || got.Descriptors != c.descriptors || len(got.UnwindTypes) != c.unwind {
			t.Errorf("%v of %v, %v and flags %#x: got %+v", c.machine, c.class, c.data, c.flags, got)
		}
	}
}
