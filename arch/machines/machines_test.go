package machines_test

import (
	"debug/elf"
	"testing"

	"sdtconvert/arch/machines"
)

func TestLookupTellsMachinesAndClassesApart(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		class   elf.Class
		want    string // "" for none
	}{
		{elf.EM_X86_64, elf.ELFCLASS64, "amd64"},
		{elf.EM_AARCH64, elf.ELFCLASS64, "arm64"},
		{elf.EM_RISCV, elf.ELFCLASS64, "riscv64"},
		{elf.EM_X86_64, elf.ELFCLASS32, ""},  // x32
		{elf.EM_AARCH64, elf.ELFCLASS32, ""}, // ILP32
		{elf.EM_RISCV, elf.ELFCLASS32, ""},   // RV32
		{elf.EM_386, elf.ELFCLASS32, ""},
		{elf.EM_PPC64, elf.ELFCLASS64, ""},
		{elf.EM_NONE, elf.ELFCLASSNONE, ""},
	} {
		got := ""
		if m := machines.Lookup(c.machine, c.class); m != nil {
			got = m.Traits().Name
		}
		if got != c.want {
			t.Errorf("%v of %v is %q, want %q", c.machine, c.class, got, c.want)
		}
	}
}

func TestTraitsAgreeWithTheClass(t *testing.T) {
	for _, machine := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64, elf.EM_RISCV} {
		m := machines.Lookup(machine, elf.ELFCLASS64)
		if m.Traits().Class != elf.ELFCLASS64 {
			t.Errorf("%v: class %v", machine, m.Traits().Class)
		}
		word := m.DataReloc(m.Traits().Word)
		if word.Size != 8 {
			t.Errorf("%v: a word is of %d bytes", machine, word.Size)
		}
	}
}
