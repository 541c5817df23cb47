package trace

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// behind are instructions that stand behind a site of one byte, of which the tracer moves some. %d is a number, %s a label that is new.
var behind = []string{
	"movl $%d,%%eax", "addq $%d,%%rbx", "adcq $%d,%%rcx", "sbbl $%d,%%edx", "cmpq $%d,%%rsi", "testl $%d,%%r10d", "andl $%d,%%r11d", "xorq $%d,%%r12",
	"imulq $%d,%%rdi,%%rsi", "movabsq $0x1234567887654321,%%r9", "pushq $%d\n\tpopq %%rax", "leaq %d(%%rax,%%rbx,4),%%rcx",
	"leaq data+8(%%rip),%%rcx", "movq data+16(%%rip),%%rdx", "addl %%esi,data+24(%%rip)", "cmpl $%d,data(%%rip)", "movb $7,data+3(%%rip)", "adcq data+8(%%rip),%%rax",
	"cmovneq data+8(%%rip),%%rbx", "lock xaddq %%r8,data+32(%%rip)", "rorq $5,data+40(%%rip)", "movups data(%%rip),%%xmm1\n\tmovq %%xmm1,%%r13", "cvtsi2sdl data(%%rip),%%xmm2\n\tmovq %%xmm2,%%r14",
	"movq -24(%%rsp),%%r15", "movl $%d,-40(%%rsp)\n\tmovl -40(%%rsp),%%eax", "movq 0x100(%%rsp),%%r15", "vpaddd data(%%rip),%%xmm1,%%xmm3\n\tvmovq %%xmm3,%%r13",
	".byte 0xe9\n\t.long %s-.-4\n\t.skip 9,0x90\n%[1]s:", ".byte 0x0f,0x85\n\t.long %s-.-4\n\taddq $3,%%rax\n%[1]s:", ".byte 0x0f,0x8c\n\t.long %s-.-4\n\taddq $5,%%rax\n%[1]s:",
	"jc %s\n\taddq $9,%%rax\n%[1]s:", "call add", "call *pointer(%%rip)", "leaq add(%%rip),%%rax\n\tcall *%%rax", "nopw 0x100(%%rax)", "cqto", "rep stosb",
	// Less than four bytes: what follows moves, too.
	"testq %%rbx,%%rbx", "addl %%eax,%%ebx", "adcb %%r12b,%%r13b", "xchgq %%rax,%%rcx", "pushq %%r9\n\tpopq %%r10", "cltq\n\tmovl $%d,%%esi", "setc %%al", "stc\n\tclc\n\tcmc",
	"testb %%r12b,%%r12b\n\t.byte 0x0f,0x85\n\t.long %s-.-4\n\taddq $3,%%rax\n%[1]s:", "sbbl %%edx,%%eax\n\t.byte 0xe9\n\t.long %s-.-4\n\t.skip 9,0x90\n%[1]s:",
	"cmpl %%ecx,%%edi\n\tadcq data+8(%%rip),%%rax", "shlq %%cl,%%r8\n\tcall *pointer(%%rip)",
}

// movedProgram returns an assembly program that executes each site with random registers and flags, and takes in what the instruction has done.
func movedProgram(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString("\t.text\n\t.globl run\nrun:\n\tpush %rbx\n\tpush %rbp\n\tpush %r12\n\tpush %r13\n\tpush %r14\n\tpush %r15\n\tsub $0x208,%rsp\n\tlea -0x80(%rsp),%rdi\n\tmov $0x51,%ecx\n\tmov $0x77,%eax\n\trep stosq\n")
	for i := range 300 {
		for _, register := range strings.Fields("rax rbx rcx rdx rsi rdi r8 r9 r10 r11 r12 r13 r14 r15") {
			fmt.Fprintf(&b, "\tmovabsq $%#x,%%%s\n", r.Uint64()>>r.IntN(60), register)
		}
		b.WriteString("\tpxor %xmm1,%xmm1\n")
		template := behind[r.IntN(len(behind))]
		if template == "rep stosb" {
			b.WriteString("\tleaq data+64(%rip),%rdi\n\tandl $31,%ecx\n")
		}
		fmt.Fprintf(&b, "\txorl %%ebp,%%ebp\n\tmovl $%d,%%ebp\n\tpush %%rbp\n\tpopf\n\tmovl $0,%%ebp\n", []int{0x202, 0x246, 0x293, 0xa83, 0x2d7}[r.IntN(5)])
		argument := any(r.Int32N(1 << 30))
		if strings.Contains(template, "%s") {
			argument = fmt.Sprintf(".Lbehind%d", i)
		}
		instruction := strings.ReplaceAll(template, "%%", "%")
		if strings.ContainsAny(template, "ds") && (strings.Contains(template, "$%d") || strings.Contains(template, "%s") || strings.Contains(template, "%d(")) {
			instruction = fmt.Sprintf(template, argument)
		}
		sites := 1 + max(0, r.IntN(10)-7) // one behind the other: only the last has room
		for site := range sites {
			fmt.Fprintf(&b, "98%d:\tnop\n", site)
		}
		fmt.Fprintf(&b, "\t%s\n\tcall take\n", instruction)
		for site := range sites {
			fmt.Fprintf(&b, "\t.pushsection .note.stapsdt,\"?\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n993:\t.8byte 98%db,0,0\n\t.asciz \"moved\"\n\t.asciz \"n%d-%d\"\n\t.asciz \"8@%%rax 8@%%rbx\"\n994:\t.balign 4\n\t.popsection\n", site, i, site)
		}
	}
	b.WriteString(`	add $0x208,%rsp
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbp
	pop %rbx
	ret
add:	addq $77,%rbx
	ret
take:	pushf
`)
	for _, register := range strings.Fields("rax rbx rcx rdx rsi rdi r8 r9 r10 r11 r12 r13 r14 r15") {
		fmt.Fprintf(&b, "\tpush %%%s\n", register)
	}
	b.WriteString(`	mov %rsp,%rdi
	mov %rsp,%rbx
	and $-16,%rsp
	call digest@PLT
	mov %rbx,%rsp
	add $120,%rsp
	ret
	.data
	.globl data
	.balign 16
data:	.fill 32,8,0x1122334455667788
pointer: .quad add
	.section .note.GNU-stack,"",@progbits
`)
	return b.String()
}

const movedMain = `
#include <stdio.h>
#include <unistd.h>
extern void run(void);
extern unsigned long data[32];
static unsigned long sum;
char room[ROOM]; /* to which jumps would lead */
/* digest takes in 14 registers and the flags; addresses of the program are left out. */
void digest(unsigned long *saved) {
	for (int i = 0; i < 15; i++) {
		unsigned long v = i == 14 ? saved[i] & 0x8c1 : saved[i];
		if (v - (unsigned long)data + (1UL << 20) < 1UL << 21 || v > 0x7f0000000000UL && v < 0x800000000000UL) v = 1;
		sum = sum * 6364136223846793005UL + v;
	}
	for (int i = 0; i < 16; i++) sum = sum * 31 + data[i];
}
int main(void) {
	for (int i = 0; i < 60; i++) { run(); if (i % 20 == 0) usleep(1000); }
	printf("%lx\n", sum);
	return 0;
}
`

// Instructions that the tracer moves do what they do in their place.
func TestMovedInstructions(t *testing.T) {
	needPtrace(t)
	traps, sites := 0, 0
	for seed := range tools.Cases(t, 12) {
		r := rand.New(rand.NewPCG(uint64(seed), 9))
		link := [][]string{nil, {"-no-pie"}, {"-static"}}[seed%3]
		program := compile(t, gcc(), write(t, "moved.c", movedMain), append([]string{write(t, "run.s", movedProgram(r)), "-mavx", "-DROOM=" + []string{"1", "1<<30"}[seed%2]}, link...)...)
		want := tools.Output(t, program)
		got := tools.Command{}.Result(t, converter, "trace", "-c", "--", program)
		expect.Equal(t, 0, got.Status, "seed %d: %s", seed, got.Stderr)
		expect.Equal(t, strings.TrimSpace(want), strings.TrimSpace(got.Stdout[:strings.Index(got.Stdout+"\n", "\n")]), "seed %d: %s", seed, got.Stderr)
		for name, hits := range counts(got.Stdout) {
			expect.Equal(t, 60, hits, "seed %d: %s", seed, name)
		}
		sites += len(counts(got.Stdout))
		if match := breakpointLine.FindStringSubmatch(got.Stderr); match != nil {
			traps += expect.Value(strconv.Atoi(match[1]))(t)
		}
	}
	t.Logf("%d of %d sites have breakpoints", traps, sites)
	if traps > sites/3 {
		t.Errorf("%d of %d sites have breakpoints", traps, sites)
	}
}

var breakpointLine = regexp.MustCompile(`(\d+) sites? armed by breakpoints`)
