package attach

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// compilerOperands are operands as gcc and clang write them for each machine: a size, and places.
var compilerOperands = map[*toolchains.Machine][]string{
	toolchains.AMD64: {
		"8 %rax %rbx %rcx %rdx %rsi %rdi %rbp %r8 %r9 %r10 %r11 %r12 %r13 %r14 %r15 (%rsp) $-5",
		"-4 %eax %ebx %ecx %edx %esi %edi %ebp %r8d %r9d %r10d %r11d %r12d %r13d %r14d %r15d 8(%rsp) $5 main(%rip) main",
		"2 %ax %bx %cx %dx %si %di %bp %r8w %r9w %r10w %r11w %r12w %r13w %r14w %r15w",
		"1 %al %bl %cl %dl %sil %dil %bpl %r8b %r9b %r10b %r11b %r12b %r13b %r14b %r15b",
		"-1 %rax %rbx %rcx %rdx %rsi %rdi %rbp %r8 %r9 %r10 %r11 %r12 %r13 %r14 %r15", // provider -h's
	},
	toolchains.I386: {
		"-4 %eax %ebx %ecx %edx %esi %edi %ebp 8(%esp) $-5 main", "2 %ax %bx %cx %dx %si %di %bp", "1 %al %bl %cl %dl %esi %edi",
	},
	toolchains.ARM:     {"4 r0 r1 r2 r3 r4 r5 r6 r7 r8 r9 r10 fp ip lr r11 r12 [sp] #5 #-5", "-1 r0 r7"},
	toolchains.ARM64:   {"8 x0 x7 x8 x15 x16 x18 x19 x29 x30 sp", "-4 w0 w7 w8 w19 w28 5 -5", "1 w0 w30"},
	toolchains.PPC64:   {"8 0 3 9 14 31", "-4 9 8(1) i5 i-5", "1 10"},
	toolchains.PPC64LE: {"8 0 3 9 14 31", "-4 9 8(1) i5 i-5", "1 10"},
	toolchains.S390X:   {"8 %r0 %r1 %r2 %r11 %r12", "-4 %r5 160(%r15) 5 -5", "1 %r2"},
	// gdb 13 knows of no arguments there.
	toolchains.RISCV64: nil,
}

// aNote is assembly that makes a NOP and its note, of provider p.
const aNote = `__asm__ volatile("1: nop\n.pushsection .note.stapsdt,\"\",%%%%note\n.balign 4\n.4byte 2f-3f,5f-4f,3\n3: .asciz \"stapsdt\"\n2: .balign 4\n"
"4: .dc.a 1b,note_base,0\n.asciz \"p\"\n.asciz \"o%d\"\n.asciz \"%s\"\n5: .balign 4\n.popsection" ::);
`

// noteBase is assembly of the section that gdb looks for.
const noteBase = `__asm__(".pushsection .stapsdt.base,\"a\"\nnote_base: .byte 0\n.popsection");
`

// TestOperandNames has gdb read each operand that compilers write, alone in its note, and
// compares what it does not read with what check says.
func TestOperandNames(t *testing.T) {
	tools.Need(t, "gdb-multiarch")
	for _, m := range toolchains.Machines {
		lists := compilerOperands[m]
		if lists == nil {
			continue
		}
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			m.Need(t)
			checkOperandNames(t, m, lists)
		})
	}
}

func checkOperandNames(t *testing.T, m *toolchains.Machine, lists []string) {
	var source, script strings.Builder
	var operands []string
	source.WriteString(noteBase + "int main(void)\n{\n")
	for _, list := range lists {
		size, places, _ := strings.Cut(list, " ")
		for _, place := range strings.Fields(places) {
			operand := size + "@" + place
			fmt.Fprintf(&source, aNote, len(operands), strings.ReplaceAll(operand, "%", "%%"))
			fmt.Fprintf(&script, "break -probe-stap p:o%d\n", len(operands))
			operands = append(operands, operand)
		}
	}
	source.WriteString("return 0;\n}\n")
	dir := t.TempDir()
	exe := filepath.Join(dir, "operands")
	disk.Write(t, exe+".c", source.String())
	tools.Must(t, m.CC(toolchains.GCC)[0], append(m.CC(toolchains.GCC)[1:], "-static", "-o", exe, exe+".c")...)
	if m.QEMU == "" {
		script.WriteString("run\n")
	} else {
		script.WriteString("target remote " + m.WaitForGDB(t, exe, "") + "\ncontinue\n")
	}
	for i := range operands {
		// An error of gdb ends a script, and not one of its Python.
		script.WriteString("python\ntry:\n\tprint('> %d' % int(gdb.parse_and_eval('$_probe_arg0')))\nexcept gdb.error as e:\n\tprint('> ' + str(e))\nend\n")
		if i+1 < len(operands) {
			script.WriteString("continue\n")
		}
	}
	got := underGDB(t, "gdb-multiarch", script.String(), exe)
	if len(got) != len(operands) {
		t.Fatalf("gdb says %d of %d operands: %q", len(got), len(operands), got)
	}
	unreadBy := map[string]string{}
	for _, f := range finding.FindAllStringSubmatch(tools.Must(t, converter, "check", exe), -1) {
		unreadBy[f[2]] = f[1]
	}
	arguments := &machineOf(m).Traits().Arguments
	for i, operand := range operands {
		unread := !isNumber.MatchString(got[i])
		if unread != (unreadBy[operand] == "gdb") {
			t.Errorf("gdb reads %s as %q, and check says that %q does not read it", operand, got[i], unreadBy[operand])
		}
		if as := arguments.AsTracersRead(operand); as != operand && unreadBy[as] == "perf" {
			t.Errorf("a conversion writes %s for %s, which perf does not read", as, operand)
		}
	}
}

// finding is that of an argument which a tracer does not read.
var finding = regexp.MustCompile(`: (\w+) does not read the argument (.+) of the note`)

var isNumber = regexp.MustCompile(`^-?\d+$`)

func machineOf(m *toolchains.Machine) arch.Machine {
	all := machines.All()
	return all[slices.IndexFunc(all, func(known arch.Machine) bool { return known.Traits().Name == m.Name })]
}

// byteArguments has more arguments of a byte than amd64 has other registers than r8 to r15.
const byteArguments = `
#ifdef PROVIDER
#include "bytes.h"
#define FIRE(a, b, c, d, e, f, g, h) APP_BYTES(a, b, c, d, e, f, g, h)
#else
#include <sdt.h>

#define FIRE(a, b, c, d, e, f, g, h) DTRACE_PROBE8(app___bytes, char, a, char, b, char, c, char, d, char, e, char, f, _Bool, g, unsigned char, h)
#endif
__attribute__((noinline)) int fire(signed char a, signed char b, signed char c, signed char d, signed char e, signed char f, _Bool g, unsigned char h)
{
	FIRE(a, b, c, d, e, f, g, h);
	return a + b + c + d + e + f + g + h;
}
int main(int argc, char **argv)
{
	(void)argv;
	return fire(-1 * argc, 2 * argc, -3 * argc, 4 * argc, -5 * argc, 6 * argc, argc, 200 * argc) & 0;
}
`

// TestBytesInRegisters has gdb read arguments of one byte, which compilers put into registers
// whose low byte gdb does not know by the name of the assemblers.
func TestBytesInRegisters(t *testing.T) {
	tools.Need(t, "gdb")
	script := "break -probe-stap app:bytes\nrun\nprintf \"> %d %d %d %d %d %d %d %d\\n\""
	for i := range 8 {
		script += fmt.Sprintf(", $_probe_arg%d", i)
	}
	for _, compiler := range []string{"gcc", toolchains.LLVM("clang")} {
		for _, flags := range []string{"", "-DPROVIDER"} {
			t.Run(compiler+flags, func(t *testing.T) {
				t.Parallel()
				tools.Need(t, compiler)
				dir := t.TempDir()
				disk.Write(t, dir+"/bytes.c", byteArguments)
				disk.Write(t, dir+"/bytes.d", "provider app { probe bytes(char, char, char, char, char, char, char, unsigned char); };\n")
				tools.Must(t, converter, "provider", "-h", "-s", dir+"/bytes.d", "-o", dir+"/bytes.h")
				words := append([]string{"-O2", "-I" + include, "-I" + dir, "-c", "-o", dir + "/bytes.o", dir + "/bytes.c"}, strings.Fields(flags)...)
				tools.Must(t, compiler, words...)
				tools.Must(t, converter, "--stapsdt", dir+"/bytes.o")
				tools.Must(t, compiler, "-o", dir+"/bytes", dir+"/bytes.o")
				expect.Equal(t, []string{"-1 2 -3 4 -5 6 1 200"}, underGDB(t, "gdb", script+"\n", dir+"/bytes"))
				if out := tools.Must(t, converter, "check", dir+"/bytes"); strings.Contains(out, "unread-argument") {
					t.Error(out)
				}
			})
		}
	}
}
