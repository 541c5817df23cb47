package arch_test

import (
	"debug/elf"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/expect"
)

func TestTextHoldsOnlyItsWindow(t *testing.T) {
	text := arch.Text{Code: []byte{1, 2, 3, 4}, Start: 100}
	for _, c := range []struct {
		off  uint64
		n    int
		want []byte
	}{
		{100, 4, []byte{1, 2, 3, 4}},
		{102, 1, []byte{3}},
		{103, 1, []byte{4}},
		{104, 0, []byte{}},
		{103, 2, nil},
		{99, 1, nil},
		{105, 0, nil},
		{^uint64(0), 1, nil},
	} {
		if got := text.At(c.off, c.n); !cmp.Equal(got, c.want) {
			t.Errorf("At(%d, %d) = %v, want %v", c.off, c.n, got, c.want)
		}
	}
}

func TestTextGivesNoRoomToAppendInto(t *testing.T) {
	code := []byte{1, 2, 3}
	b := arch.Text{Code: code}.At(0, 1)
	_ = append(b, 9)
	expect.Equal(t, 2, code[1], "appending to what At returned changed the text to %v", code)
}

func TestEncodingIsOfTheLastMapping(t *testing.T) {
	text := arch.Text{Map: []arch.Mapping{{Offset: 4, Encoding: arch.Insns}, {Offset: 8, Encoding: arch.Data}, {Offset: 8, Encoding: arch.Thumb}, {Offset: 12, Encoding: arch.Data}}}
	for off, want := range map[uint64]arch.Encoding{
		0: arch.Unmapped, 3: arch.Unmapped, 4: arch.Insns, 7: arch.Insns, 8: arch.Thumb, 11: arch.Thumb, 12: arch.Data, ^uint64(0): arch.Data,
	} {
		expect.Equal(t, want, text.Encoding(off), "%d", off)
	}
	expect.Equal(t, arch.Unmapped, (arch.Text{}).Encoding(4), "without a map")
}

func TestOperandsAsTracersReadThem(t *testing.T) {
	known := map[string]string{"$a0": "$r4", "$fp": "$r22"}
	a := arch.Arguments{Rename: func(word string) string {
		if name, ok := known[word]; ok {
			return name
		}
		return word
	}}
	for operands, want := range map[string]string{
		"":                          "",
		"-4@$a0 8@5 8@$r7":          "-4@$r4 8@5 8@$r7",
		"8@$fp,-16 1@$a01 2@sym$a0": "8@$r22,-16 1@$a01 2@sym$a0",
		"8@$a0":                     "8@$r4",
	} {
		expect.Equal(t, want, a.AsTracersRead(operands), "%q", operands)
	}
}

// As of i386, whose calls push an address that tail calls find pushed; of Arm, where a
// long long takes two registers; and of s390x, whose words have their lowest bytes last.
func TestArgumentsInRegistersAndOnTheStack(t *testing.T) {
	stack := arch.Traits{
		Model:     arch.ILP32,
		Arguments: arch.Arguments{Stack: &arch.Stack{Operand: "%d(%%esp)", Call: 0, Tail: 4}},
	}
	pairs := arch.Traits{
		Model:     arch.ILP32,
		Arguments: arch.Arguments{Registers: []arch.Register{{"r0", "r0", "r0", ""}, {"r1", "r1", "r1", ""}}},
	}
	big := arch.Traits{
		Model:     arch.LP64,
		Arguments: arch.Arguments{Registers: arch.Registers("%r2"), Stack: &arch.Stack{Operand: "%d(%%r15)", Call: 160, Tail: 160}},
	}
	for _, c := range []struct {
		traits *arch.Traits
		form   arch.Form
		data   elf.Data
		sizes  []int
		want   []string
	}{
		{&stack, arch.Call, elf.ELFDATA2LSB, []int{4, 1, 8, 2}, []string{"0(%esp)", "4(%esp)", "8(%esp)", "16(%esp)"}},
		{&stack, arch.Tail, elf.ELFDATA2LSB, []int{4, 4}, []string{"4(%esp)", "8(%esp)"}},
		{&stack, arch.CondTail, elf.ELFDATA2LSB, []int{4, 0, 4}, []string{"4(%esp)"}},
		{&pairs, arch.Call, elf.ELFDATA2LSB, []int{4, 8, 4}, []string{"r0"}},
		{&pairs, arch.Call, elf.ELFDATA2LSB, []int{1, 2, 4}, []string{"r0", "r1"}},
		{&big, arch.Call, elf.ELFDATA2MSB, []int{4, 4, 8, 1}, []string{"%r2", "164(%r15)", "168(%r15)", "183(%r15)"}},
	} {
		expect.Equal(t, c.want, c.traits.Operands(c.form, c.data, c.sizes), "%v", c.sizes)
	}
}
