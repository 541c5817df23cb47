package notes

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/linkerset"
)

func TestNotes(t *testing.T) {
	to := linkerset.SymbolRef{Sym: 3, Addend: 0x12}
	little, big := binary.ByteOrder(binary.LittleEndian), binary.ByteOrder(binary.BigEndian)
	for _, c := range []struct {
		class  elf.Class
		order  binary.ByteOrder
		rela   bool
		want   string
		fields []uint64
	}{
		{elf.ELFCLASS64, little, true, "05000000" + "1b000000" + "07000000" + "7573647400000000" +
			"0000000000000000" + "0000000000000000" + "0000000000000000" + "616200" + "00", []uint64{20, 28}},
		{elf.ELFCLASS64, big, false, "00000005" + "0000001b" + "00000007" + "7573647400000000" +
			"0000000000000012" + "0000000000000012" + "0000000000000000" + "616200" + "00", []uint64{20, 28}},
		{elf.ELFCLASS32, little, false, "05000000" + "13000000" + "07000000" + "7573647400000000" +
			"12000000" + "1200000000000000" + "00000000" + "616200" + "00", []uint64{20, 24}},
		{elf.ELFCLASS32, big, false, "00000005" + "00000013" + "00000007" + "7573647400000000" +
			"00000012" + "0000000000000012" + "00000000" + "616200" + "00", []uint64{20, 28}},
	} {
		n := &sectionNotes{layout: elfreloc.Encoding{Class: c.class, Order: c.order}, rela: c.rela}
		for range 2 {
			n.add("usdt", 7, func(n *sectionNotes) {
				n.word(to)
				n.word64(to)
				n.word(linkerset.SymbolRef{})
				n.string("ab")
			})
		}
		expect.Equal(t, c.want+c.want, hex.EncodeToString(n.data), "%v, %v", c.class, c.order)
		for i, f := range n.fields {
			size := uint64(len(c.want) / 2)
			if want := (noteField{uint64(i/2)*size + c.fields[i%2], to}); f != want {
				t.Errorf("%v, %v: field %d is %v, want %v", c.class, c.order, i, f, want)
			}
		}
	}
}

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

func TestFunctionsAreThereOnceAndFit(t *testing.T) {
	long := strings.Repeat("f", 200)
	names, at := functionNames([]USDTNote{{Function: "main"}, {Function: "place"}, {Function: "main"}, {Function: long}, {Function: ""}})
	expect.Equal(t, "\x00main\x00place\x00"+long[:127]+"\x00", string(names))
	expect.Equal(t, []int64{1, 6, 1, 12, 0}, at)
}

func TestOperands(t *testing.T) {
	for _, c := range []struct {
		all string
		n   int
		bad string
	}{
		{"", 0, ""},
		{"-4@%edi", 1, ""},
		{"-4@%edi 8@%rsi 1@%dl 2@%r8w 4@%r9d 1@%r10b 1@%sil 1@%ah -2@%ax 8@%rip", 10, ""},
		{"8@0(%rsp) -4@8(%rsp) 4@(%rax) 8@-24(%rbp)", 4, ""},
		{"8@(%rax,%rcx,8) 8@16(%rax,%r12,4)", 2, ""},
		{"4@$7 -8@$-1", 2, ""},
		{"-4@x0 8@w1 8@sp 4@[sp, 6] 4@[x1] 8@[x1, x2] 4@-3", 7, ""},
		{"8@a0 -4@a7 8@0(sp)", 3, ""},
		{"4@%edi 8@counter(%rip) 8f@%xmm0", 3, "8@counter(%rip)"},
		{"8f@%xmm0", 1, "8f@%xmm0"},
		{"8@%xmm0", 1, "8@%xmm0"},
		{"4@counter", 1, "4@counter"},
		{"8@%fs:0(%rax)", 1, "8@%fs:0(%rax)"},
		{"8@[x1, :lo12:counter] 4@x0", 2, "8@[x1, :lo12:counter]"},
	} {
		if n, bad := CountOperands(c.all); n != c.n || bad != c.bad {
			t.Errorf("%q: got %d and %q, want %d and %q", c.all, n, bad, c.n, c.bad)
		}
	}
}
