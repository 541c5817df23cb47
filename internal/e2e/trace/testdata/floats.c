/* Passes floating-point numbers in vector registers and in memory, and as bits of declared types. */
#define NOTE(name, args, ...) __asm__ volatile ("990:\tnop\n" \
	".pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n" \
	"993:\t.8byte 990b,_.stapsdt.base,0\n.asciz \"fl\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n994:\t.balign 4\n.popsection\n" \
	".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n" \
	".hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n" :: __VA_ARGS__)

int main(void)
{
	for (int i = 0; i < 3; i++) {
		double d = i * 1.25 - 2;
		float f = i / 4.0f;
		volatile double m = d * 8;
		long bits = *(long *)&d;
		NOTE("numbers", "8f@%0 4f@%1 8f@%2 8@%3 -4@%4", "x" (d), "x" (f), "m" (m), "r" (bits), "r" (i));
	}
	return 0;
}
