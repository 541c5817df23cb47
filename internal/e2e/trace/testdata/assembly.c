/* Notes as sources in assembly have them, by SystemTap's header. */
#define NOTE(name, args) \
	"990:\tnop\n" \
	"\t.pushsection .note.stapsdt,\"\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n" \
	"993:\t.8byte 990b,_.stapsdt.base,0\n\t.asciz \"f\"\n\t.asciz \"" name "\"\n\t.asciz \"" args "\"\n994:\t.balign 4\n\t.popsection\n"

__asm__(".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n"
	".hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n");

static const char pool[] = "java/lang/Objectjava/lang/String";

int main(void)
{
	__asm__ volatile(
		"push %%rbp\n\tmov %%rsp,%%rbp\n\tsub $32,%%rsp\n\tmovq $41,-8(%%rbp)\n\txor %%eax,%%eax\n"
		NOTE("bare", "-8(%%rbp) $5")
		NOTE("sum", "8@-4+12-16(%%rbp)")
		NOTE("index", "8@-8(%%rbp,%%rax,1)")
		NOTE("plus", "8@$3+($10-$8)-$1")
		NOTE("bits", "8@$8|$4")
		"movl $0x55667788,%%ecx\n"
		NOTE("high", "1@%%ch 4@%%ecx")
		"movl $-1,%%edx\n"
		NOTE("word", "8@%%rdx 4@%%edx 8@%%rdx")
		NOTE("text", "8@%0 -4@$16 -4@$1")
		"leave\n" : : "D"(pool) : "rax", "rcx", "rdx", "memory");
	return 0;
}
