//go:build linux

package main

import (
	"debug/elf"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

func TestFetch(t *testing.T) {
	for _, c := range []struct {
		machine elf.Machine
		operand string
		want    string
	}{
		{elf.EM_X86_64, "-4@%edi", "%di:s32"},
		{elf.EM_X86_64, "1@%r9b", "%r9:u8"},
		{elf.EM_X86_64, "8@%rax", "%ax:u64"},
		{elf.EM_X86_64, "2@%dx", "%dx:u16"},
		{elf.EM_X86_64, "1@%sil", "%si:u8"},
		{elf.EM_X86_64, "1@%bl", "%bx:u8"},
		{elf.EM_X86_64, "-4@$-5", `\-5:s32`},
		{elf.EM_X86_64, "4@-8(%rbp)", "-8(%bp):u32"},
		{elf.EM_386, "4@(%esp)", "+0(%sp):u32"},
		{elf.EM_ARM, "-4@r3", "%r3:s32"},
		{elf.EM_ARM, "4@[sp, #8]", "+8(%sp):u32"},
		{elf.EM_AARCH64, "-4@w2", "%x2:s32"},
		{elf.EM_AARCH64, "8@[sp, 16]", "+16(%sp):u64"},
		{elf.EM_AARCH64, "4@[sp]", "+0(%sp):u32"},
		{elf.EM_AARCH64, "-4@7", `\7:s32`},
		{elf.EM_LOONGARCH, "8@$r5", "%r5:u64"},
		{elf.EM_LOONGARCH, "-2@$r3,24", "+24(%r3):s16"},
		{elf.EM_PPC64, "-4@3", "%gpr3:s32"},
		{elf.EM_PPC64, "-4@i7", `\7:s32`},
		{elf.EM_PPC64, "8@96(1)", "+96(%gpr1):u64"},
		{elf.EM_RISCV, "-4@a0", "%a0:s32"},
		{elf.EM_RISCV, "1@-8(sp)", "-8(%sp):u8"},
		{elf.EM_S390, "1@167(%r15)", "+167(%r15):u8"},
	} {
		expect.Equal(t, c.want, expect.Value(fetch(c.machine, c.operand))(t), "%v %s", c.machine, c.operand)
	}
	for _, bad := range []string{"", "%rdi", "x@%rdi"} {
		if got, err := fetch(elf.EM_X86_64, bad); err == nil {
			t.Errorf("%q is %s", bad, got)
		}
	}
}
