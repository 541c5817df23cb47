package stapsdt

import (
	"debug/elf"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
)

func machine(m elf.Machine) arch.Machine { return machines.Lookup(m, elf.ELFCLASS64) }

func TestTypesByTheirNames(t *testing.T) {
	amd64, arm64 := machine(elf.EM_X86_64), machine(elf.EM_AARCH64)
	for _, c := range []struct {
		name string
		want string // on amd64
	}{
		{"int", "-4@%edi"},
		{"unsigned", "4@%edi"},
		{"long unsigned int", "8@%rdi"},
		{"long long", "-8@%rdi"},
		{"const volatile short", "-2@%di"},
		{"unsigned char", "1@%dil"},
		{"char", "-1@%dil"},
		{"_Bool", "1@%dil"},
		{"enum colour", "4@%edi"},
		{"uint16_t", "2@%di"},
		{"struct icmp *", "8@%rdi"},
		{"char const[16]", "8@%rdi"},
		{"void (*)(int)", "8@%rdi"},
		{"struct vnode", "8@%rdi"},
		{"vnode_t", "8@%rdi"},
		{"", "8@%rdi"},
	} {
		if got := Operands(amd64, []Type{Native(c.name, amd64)}); got != c.want {
			t.Errorf("%q: got %s, want %s", c.name, got, c.want)
		}
	}
	if got := Operands(arm64, []Type{Native("char", arm64), Native("int", arm64)}); got != "1@x0 -4@x1" {
		t.Errorf("arm64: got %s", got)
	}
}

func TestOperandsEndWhereRegistersDo(t *testing.T) {
	m := machine(elf.EM_X86_64)
	if got, want := Operands(m, make9(8)), "8@%rdi 8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	types := make9(4)
	types[2].Size = 0 // a double, for one
	if got, want := Operands(m, types), "4@%edi 4@%esi"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := Operands(m, nil); got != "" {
		t.Errorf("got %s", got)
	}
}

func make9(size int) []Type {
	types := make([]Type, 9)
	for i := range types {
		types[i].Size = size
	}
	return types
}
