package notes

import (
	"debug/elf"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

func machine(m elf.Machine) arch.Machine {
	return machines.Lookup(elfreloc.ABI{Machine: m, Class: elf.ELFCLASS64, Data: elf.ELFDATA2LSB})
}

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
		expect.Equal(t, c.want, Operands(amd64, arch.Call, elf.ELFDATA2LSB, []ArgType{NativeType(c.name, amd64)}), "%q", c.name)
	}
	expect.Equal(t, "1@x0 -4@x1", Operands(arm64, arch.Call, elf.ELFDATA2LSB, []ArgType{NativeType("char", arm64), NativeType("int", arm64)}), "arm64")
}

func TestOperandsGoOnBehindTheRegisters(t *testing.T) {
	m := machine(elf.EM_X86_64)
	if got, want := Operands(m, arch.Call, elf.ELFDATA2LSB, make9(8)), "8@%rdi 8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9 8@0(%rsp) 8@8(%rsp) 8@16(%rsp)"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	big := machines.Lookup(elfreloc.ABI{Machine: elf.EM_AARCH64, Class: elf.ELFCLASS64, Data: elf.ELFDATA2MSB})
	if got, want := Operands(big, arch.Tail, elf.ELFDATA2MSB, make9(2)), "2@x0 2@x1 2@x2 2@x3 2@x4 2@x5 2@x6 2@x7 2@[sp, 6]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	types := make9(4)
	types[2].Size = 0 // a double, for one
	expect.Equal(t, "4@%edi 4@%esi", Operands(m, arch.Call, elf.ELFDATA2LSB, types))
	expect.Equal(t, "", Operands(m, arch.Call, elf.ELFDATA2LSB, nil))
}

func make9(size int) []ArgType {
	types := make([]ArgType, 9)
	for i := range types {
		types[i].Size = size
	}
	return types
}

// ilp32 is a machine whose words are of 4 bytes.
type ilp32 struct{ arch.Machine }

func (m ilp32) Traits() *arch.Traits {
	t := *m.Machine.Traits()
	t.Model, t.CharUnsigned = arch.ILP32, true
	return &t
}

func TestTypesOfADataModel(t *testing.T) {
	m := ilp32{machine(elf.EM_X86_64)}
	for name, want := range map[string]ArgType{
		"long": {4, true}, "unsigned long int": {4, false}, "u_long": {4, false}, "long long": {8, true}, "int64_t": {8, true},
		"size_t": {4, false}, "time_t": {4, true}, "char *": {4, false}, "vnode_t": {4, false}, "char": {1, false}, "short": {2, true},
	} {
		expect.Equal(t, want, NativeType(name, m), "%s", name)
	}
	expect.Equal(t, (ArgType{4, true}), ArgumentType("long long", m))
	if got := WordTypes(m); len(got) != 6 || got[0] != (ArgType{Size: 4}) {
		t.Errorf("got %+v", got)
	}
}
