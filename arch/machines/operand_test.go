package machines

import (
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/arm"
	"sdtconvert/arch/arm64"
	"sdtconvert/arch/ppc64"
	"sdtconvert/internal/testkit/expect"
)

func TestOperands(t *testing.T) {
	symbols := func(name string) (uint64, bool) { return 0x4000, name == "table" }
	locals := func(name string) (uint64, bool) { return ^uint64(0xff), name == "own" }
	x86 := &arch.OperandReader{Word: 8, Threads: &amd64.Machine.Traits().Threads, Address: symbols, Local: locals}
	rax, rbp := x86.Threads.Registers()["rax"], x86.Threads.Registers()["rbp"]
	none := arch.Operand{Base: -1, Index: -1}
	memory := func(size int, signed bool, base, index int, scale, value uint64) arch.Operand {
		return arch.Operand{Kind: arch.InMemory, Size: size, Signed: signed, Base: base, Index: index, Scale: scale, Value: value}
	}
	local := func(o arch.Operand) arch.Operand {
		o.Thread = true
		return o
	}
	atSymbol := func(value uint64) arch.Operand {
		return arch.Operand{Kind: arch.InMemory, Size: 4, Base: -1, Index: -1, Scale: 1, Address: true, Value: value}
	}
	constant := func(size int, value uint64) arch.Operand {
		return arch.Operand{Kind: arch.Constant, Size: size, Value: value, Base: -1, Index: -1, Scale: 1}
	}
	minus := func(n int64) uint64 { return uint64(-n) }
	for text, want := range map[string][]arch.Operand{
		"-4@%eax 1@%al": {
			{Kind: arch.InRegister, Size: 4, Signed: true, Base: rax, Index: -1, Scale: 1}, {Kind: arch.InRegister, Size: 1, Base: rax, Index: -1, Scale: 1},
		},
		"8@$-7":                {{Kind: arch.Constant, Size: 8, Value: minus(7), Base: -1, Index: -1, Scale: 1}},
		"8@-24(%rbp)":          {memory(8, false, rbp, -1, 1, minus(24))},
		"-2@8(%rbp,%rax,4)":    {memory(2, true, rbp, rax, 4, 8)},
		"4@table(%rip)":        {atSymbol(0x4000)},
		"4@16+table-8(%rip)":   {atSymbol(0x4008)},
		"8@$table+1":           {{Kind: arch.Constant, Size: 8, Address: true, Value: 0x4001, Base: -1, Index: -1, Scale: 1}},
		"4@other(%rip) 4@%edx": {none, {Kind: arch.InRegister, Size: 4, Base: x86.Threads.Registers()["rdx"], Index: -1, Scale: 1}},
		"3@%eax 8@%k1 8@%xmm16 2f@%eax 16f@%xmm0": {none, none, none, none, none},
		"8f@%xmm0 4@%xmm15": {
			{Kind: arch.InVector, Size: 8, Float: true, Index: -1, Scale: 1}, {Kind: arch.InVector, Size: 4, Base: 15, Index: -1, Scale: 1},
		},
		"4f@-8(%rbp)": {{Kind: arch.InMemory, Size: 4, Float: true, Base: rbp, Index: -1, Scale: 1, Value: minus(8)}},
		"":            nil,
		// What sources in assembly pass to SystemTap's header, and gdb's tests have.
		"-8(%rbp) %eax $5": {
			memory(8, false, rbp, -1, 1, minus(8)), {Kind: arch.InRegister, Size: 8, Base: rax, Index: -1, Scale: 1}, constant(8, 5),
		},
		"8@-4+12-16(%rbp)":                          {memory(8, false, rbp, -1, 1, minus(8))},
		"8@$3+($10-$8)-$1 8@$8|$4":                  {constant(8, 4), constant(8, 12)},
		"8@~$1&$7*$2 8@$-6/$3":                      {constant(8, 14), constant(8, minus(2))},
		"4@table+4*2+1(%rip)":                       {atSymbol(0x4009)},
		"4@table+2+1":                               {atSymbol(0x4003)},
		"1@%ch 1@%ah":                               {{Kind: arch.InRegister, Size: 1, Base: x86.Threads.Registers()["rcx"] + 1, Index: -1, Scale: 1}, {Kind: arch.InRegister, Size: 1, Base: rax + 1, Index: -1, Scale: 1}},
		"8@$1/$0 8@$ 8@(1 8@1) 8@~$table 8@table*2": {none, none, none, none, none, none},
		"8@" + strings.Repeat("(", 1000) + "1":      {none},
		"8@$table-table+1 8@table+table":            {constant(8, 1), none},
		// What gcc writes of thread-local variables.
		"-4@%fs:own@tpoff 4@%fs:8+own@tpoff-4": {local(memory(4, true, -1, -1, 1, minus(0x100))), local(memory(4, false, -1, -1, 1, minus(0xfc)))},
		"-4@%fs:own@tpoff+8(,%rax,4)":          {local(memory(4, true, -1, rax, 4, minus(0xf8)))},
		"-4@%fs:(%rax,%rbp,4) 1@%fs:8(%rax)":   {local(memory(4, true, rax, rbp, 4, 0)), local(memory(1, false, rax, -1, 1, 8))},
		"8@%fs:40":                             {local(memory(8, false, -1, -1, 1, 40))},
		"8@%fs:other@tpoff 8@%fs:own@gottpoff 8@%fs:own 8@%gs:own@tpoff 8@%fs: 8@%fs:() 8@%fs:own@tpoff(%rip)": {none, none, none, none, none, none, none},
		"8@own 8@$own 8@own@tpoff 8@table@tpoff(%rax) 8@%fs:table(%rip)":                                       {none, none, none, none, none},
	} {
		expect.Equal(t, want, x86.Read(text), "%s", text)
	}
	a64 := &arch.OperandReader{Word: 8, Threads: &arm64.Machine{}.Traits().Threads, Address: symbols}
	sp := a64.Threads.SP
	expect.Equal(t, []arch.Operand{memory(4, true, 8, 16, 1, 0), memory(8, false, 8, 16, 8, 0), none, none, none},
		a64.Read("-4@[x1, x2] 8@[x1, x2, lsl 3] -4@[x1, w2, sxtw 2] -4@[x1, w2] 4@[x1, #:lo12:table]"))
	a32 := &arch.OperandReader{Word: 4, Threads: &arm.Machine{}.Traits().Threads, Address: symbols}
	expect.Equal(t, []arch.Operand{memory(4, true, 8, 12, 1, 0), memory(4, true, 0, 16, 4, 0), none}, a32.Read("-4@[r2, r3] -4@[r0, r4, lsl #2] -4@[r0, -r4]"))
	ppc := &arch.OperandReader{Word: 8, Numeric: true, Threads: &ppc64.Little.Traits().Threads, Address: symbols}
	expect.Equal(t, []arch.Operand{memory(4, true, 72, 24, 1, 0), memory(8, false, 24, -1, 1, 0)}, ppc.Read("-4@9,3 8@0,3"))
	expect.Equal(t, []arch.Operand{
		{Kind: arch.InRegister, Size: 8, Base: 24, Index: -1, Scale: 1}, memory(4, true, sp, -1, 1, 16), memory(8, false, sp, -1, 1, 0),
		{Kind: arch.Constant, Size: 4, Value: 5, Base: -1, Index: -1, Scale: 1},
		{Kind: arch.InVector, Size: 8, Float: true, Base: 31, Index: -1, Scale: 1},
	}, a64.Read("8@x3 -4@[sp, 16] 8@[sp] 4@5 8f@d31"))
}

func TestSplitOperands(t *testing.T) {
	for text, want := range map[string][]string{
		"-4@[r0, r1, lsl #2] 8@x3": {"-4@[r0, r1, lsl #2]", "8@x3"}, "4@[sp, #16] -4@5": {"4@[sp, #16]", "-4@5"}, "8@-24(%rbp) -8(%rbp)": {"8@-24(%rbp)", "-8(%rbp)"},
		"-4@$r3, 16 8@$r4": {"-4@$r3, 16", "8@$r4"}, "": nil,
	} {
		expect.Equal(t, want, arch.SplitOperands(text), "%s", text)
	}
}
