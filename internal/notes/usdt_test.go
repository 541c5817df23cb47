package notes

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

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
