package probe

import (
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/arm64"
	"sdtconvert/internal/testkit/expect"
)

func TestOperands(t *testing.T) {
	symbols := func(name string) (uint64, bool) { return 0x4000, name == "table" }
	x86 := &operandReader{threads: &amd64.Machine.Traits().Threads, address: symbols}
	rax, rbp := x86.threads.Registers["rax"], x86.threads.Registers["rbp"]
	none := arch.Operand{Base: -1, Index: -1}
	memory := func(size int, signed bool, base, index int, scale, value uint64) arch.Operand {
		return arch.Operand{Kind: arch.InMemory, Size: size, Signed: signed, Base: base, Index: index, Scale: scale, Value: value}
	}
	atSymbol := func(value uint64) arch.Operand {
		return arch.Operand{Kind: arch.InMemory, Size: 4, Base: -1, Index: -1, Scale: 1, Address: true, Value: value}
	}
	minus := func(n int64) uint64 { return uint64(-n) }
	for text, want := range map[string][]arch.Operand{
		"-4@%eax 1@%al": {
			{Kind: arch.InRegister, Size: 4, Signed: true, Base: rax, Index: -1, Scale: 1}, {Kind: arch.InRegister, Size: 1, Base: rax, Index: -1, Scale: 1},
		},
		"8@$-7":                 {{Kind: arch.Constant, Size: 8, Value: minus(7), Base: -1, Index: -1, Scale: 1}},
		"8@-24(%rbp)":           {memory(8, false, rbp, -1, 1, minus(24))},
		"-2@8(%rbp,%rax,4)":     {memory(2, true, rbp, rax, 4, 8)},
		"4@table(%rip)":         {atSymbol(0x4000)},
		"4@16+table-8(%rip)":    {atSymbol(0x4008)},
		"8@$table+1":            {{Kind: arch.Constant, Size: 8, Address: true, Value: 0x4001, Base: -1, Index: -1, Scale: 1}},
		"4@other(%rip) 4@%edx":  {none, {Kind: arch.InRegister, Size: 4, Base: x86.threads.Registers["rdx"], Index: -1, Scale: 1}},
		"8f@%xmm0 3@%eax 8@%k1": {none, none, none},
		"":                      nil,
	} {
		expect.Equal(t, want, x86.read(text), "%s", text)
	}
	a64 := &operandReader{threads: &arm64.Machine{}.Traits().Threads, address: symbols}
	sp := a64.threads.SP
	expect.Equal(t, []arch.Operand{
		{Kind: arch.InRegister, Size: 8, Base: 24, Index: -1, Scale: 1}, memory(4, true, sp, -1, 1, 16), memory(8, false, sp, -1, 1, 0),
		{Kind: arch.Constant, Size: 4, Value: 5, Base: -1, Index: -1, Scale: 1},
	}, a64.read("8@x3 -4@[sp, 16] 8@[sp] 4@5"))
}

func TestFormats(t *testing.T) {
	word, small := arch.Operand{Kind: arch.InRegister, Size: 8}, arch.Operand{Kind: arch.InRegister, Size: 4}
	for typ, want := range map[string]Format{
		"char *": Text, "const char*": Text, "char **": Pointer, "struct shop *": Pointer, "_Bool": Boolean, "unsigned long": Number,
		"": Pointer, "string": Text, "char [16]": Text, "uintptr_t": Pointer,
	} {
		expect.Equal(t, want, formatOf(typ, &word, 8), "%s", typ)
	}
	expect.Equal(t, Number, formatOf("", &small, 8))
}
