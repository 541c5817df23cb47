package links

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// randomAssembly writes a function at random that moves the addresses of stubs and of
// another function between registers, in ways that no compiler takes. Each register that it
// uses holds the address of some function at any time, registersHarness sees to that at the
// beginning, so it may call whatever it has, wherever jumps and exceptions lead.
type randomAssembly struct {
	*rand.Rand
	strings.Builder
	name      string
	registers []string
	stubs     []string
	load      string // the instruction that loads a stub's address
	pads      int    // landing pads
	inside    int    // how many of them are in the body, and go on with it
	labels    int    // of the body
	throws    []int  // the landing pad of each call that may throw
}

func (a *randomAssembly) line(format string, args ...any) { fmt.Fprintf(a, format+"\n", args...) }

func (a *randomAssembly) register() string { return a.registers[a.IntN(len(a.registers))] }

func (a *randomAssembly) loadStub(to string) { a.line(a.load, a.stubs[a.IntN(len(a.stubs))], to) }

// skip jumps over what body writes, or not, as the argument says.
func (a *randomAssembly) skip(body func()) {
	label := a.labels
	a.labels++
	a.line("testl $%d, registers_argument(%%rip)", 1<<a.IntN(3))
	a.line("%s .Lover%d", []string{"je", "jne"}[a.IntN(2)], label)
	body()
	a.line(".Lover%d:", label)
}

// step writes a few instructions.
func (a *randomAssembly) step(depth int) {
	switch k := a.IntN(42); {
	case k < 9:
		a.loadStub(a.register())
	case k < 17:
		a.line("call *%%%s", a.register())
	case k < 23:
		a.line("mov %%%s, %%%s", a.register(), a.register())
	case k < 25:
		a.line("lea registers_called(%%rip), %%%s", a.register())
	case k < 28:
		a.line("mov %%%s, %%rax", a.register())
		a.line("call *%%rax")
	case k < 32 && depth < 2:
		a.skip(func() { a.steps(1+a.IntN(3), depth+1) })
	case k < 34 && depth == 0:
		label := a.labels
		a.labels++
		a.line(".Lagain%d:", label)
		a.steps(1+a.IntN(3), 1)
		a.line("decl registers_count(%%rip)")
		a.line("jg .Lagain%d", label)
	case k < 36 && a.pads > 0 && depth < 3:
		n := len(a.throws)
		a.throws = append(a.throws, a.IntN(a.pads))
		a.line("mov $%d, %%edi", 1<<a.IntN(3))
		a.line(".Lthrow%d: call registers_throw\n.Lthrown%d:", n, n)
	case k < 39 && a.inside < a.pads && depth < 3:
		a.line(".Lpad%d:", a.inside)
		a.inside++
	case k == 40:
		a.line("xchg %%%s, %%%s", a.register(), a.register())
	case k == 41:
		a.skip(func() { a.line("cmovne %%%s, %%%s", a.register(), a.register()) })
	}
}

func (a *randomAssembly) steps(n, depth int) {
	for range n {
		a.step(depth)
	}
}

// restore undoes what the function has done to the stack.
func (a *randomAssembly) restore() {
	a.line("add $%d, %%rsp\n.cfi_adjust_cfa_offset -%d", a.room(), a.room())
	for _, r := range slices.Backward(a.registers) {
		a.line("pop %%%s\n.cfi_adjust_cfa_offset -8\n.cfi_restore %s", r, r)
	}
}

// room keeps the stack aligned.
func (a *randomAssembly) room() int { return 8 + 8*(len(a.registers)%2) }

// source returns the function.
func (a *randomAssembly) source() string {
	a.line(".text\n.globl %[1]s\n.type %[1]s, @function\n%[1]s:\n.cfi_startproc", a.name)
	if a.pads > 0 {
		a.line(".cfi_personality 3, __gxx_personality_v0\n.cfi_lsda 3, .Ltable")
	}
	for _, r := range a.registers {
		a.line("push %%%s\n.cfi_adjust_cfa_offset 8\n.cfi_rel_offset %s, 0", r, r)
	}
	a.line("sub $%d, %%rsp\n.cfi_adjust_cfa_offset %d", a.room(), a.room())
	for _, r := range a.registers {
		switch {
		case a.IntN(2) == 0:
			a.loadStub(r)
		case a.pads > 0: // no landing pad calls the caller's values
			a.line("lea registers_called(%%rip), %%%s", r)
		}
	}
	a.steps(4+a.IntN(8), 0)
	a.line(".cfi_remember_state")
	if a.IntN(6) == 0 {
		a.line("mov %%%s, %%rax", a.register())
		a.restore()
		a.line("jmp *%%rax")
	} else {
		a.restore()
		a.line("ret")
	}
	a.line(".cfi_restore_state")
	for pad := a.inside; pad < a.pads; pad++ {
		a.line(".Lpad%d: mov %%rax, registers_exception(%%rip)", pad)
		a.steps(1+a.IntN(4), 3)
		a.line("mov registers_exception(%%rip), %%rdi\ncall _Unwind_Resume")
	}
	a.line(".cfi_endproc\n.Lend: .size %[1]s, . - %[1]s", a.name)
	if a.pads > 0 {
		a.table()
	}
	a.line(`.section .note.GNU-stack, "", @progbits`)
	return a.String()
}

// table writes where exceptions lead (Itanium C++ ABI, "Exception Handling Tables").
func (a *randomAssembly) table() {
	a.line(`.section .gcc_except_table, "a", @progbits`)
	a.line(".Ltable: .byte 255, 255, 1\n.uleb128 .Lsites_end - .Lsites\n.Lsites:")
	from := a.name
	for n, pad := range a.throws {
		a.line(".uleb128 %s - %s, .Lthrow%d - %s, 0, 0", from, a.name, n, from)
		a.line(".uleb128 .Lthrow%d - %s, .Lthrown%d - .Lthrow%d, .Lpad%d - %s, 0", n, a.name, n, n, pad, a.name)
		from = fmt.Sprintf(".Lthrown%d", n)
	}
	a.line(".uleb128 %s - %s, .Lend - %s, 0, 0\n.Lsites_end:", from, a.name, from)
}

func newRandomAssembly(seed uint64) *randomAssembly {
	r := rand.New(rand.NewPCG(seed, 12))
	pick := func(n int, all ...string) []string {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		return all[:n]
	}
	a := &randomAssembly{
		Rand: r, name: fmt.Sprintf("registers_assembly%d", seed),
		registers: pick(1+r.IntN(3), "rbx", "rbp", "r12", "r13", "r14", "r15"),
		stubs:     pick(1+r.IntN(2), "__dtrace_probe_registers___one", "__dtrace_probe_registers___none", "__dtrace_isenabled_registers___one"),
		load:      "movq %s@GOTPCREL(%%rip), %%%s",
	}
	if r.IntN(4) == 0 {
		a.load = "movabsq $%s, %%%s"
	}
	if r.IntN(2) == 0 {
		a.pads = 1 + r.IntN(2)
	}
	return a
}

// registersHarness calls the functions, with each argument. They are entered with the
// address of registers_called in all registers that they have to preserve, which is
// compared when they return.
const registersHarness = `
#include <cstdio>
extern "C" {
int registers_argument, registers_count, registers_exceptions;
void *registers_exception;
int registers_called(void) { printf("result called\n"); return 0; }
void registers_throw(int bit) { if (registers_argument & bit && registers_exceptions-- > 0) throw bit; }
void registers_enter(void (*)(void));
%s
}
asm(R"(
.text
.type registers_enter, @function
registers_enter:
	.cfi_startproc
	.irp r, rbx, rbp, r12, r13, r14, r15
	push %%\r
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset \r, 0
	lea registers_called(%%rip), %%\r
	.endr
	sub $8, %%rsp
	.cfi_adjust_cfa_offset 8
	call *%%rdi
	lea registers_called(%%rip), %%rax
	.irp r, rbx, rbp, r12, r13, r14, r15
	cmp %%rax, %%\r
	jne 1f
	.endr
	add $8, %%rsp
	.cfi_adjust_cfa_offset -8
	.irp r, r15, r14, r13, r12, rbp, rbx
	pop %%\r
	.cfi_adjust_cfa_offset -8
	.endr
	ret
1:	ud2
	.cfi_endproc
	.size registers_enter, . - registers_enter
)");
#define FUNCTION(f) { f, #f }
static const struct { void (*call)(void); const char *name; } functions[] = { %s };
int main()
{
	setvbuf(stdout, nullptr, _IONBF, 0);
	for (unsigned n = 0; n < sizeof functions / sizeof *functions; n++)
		for (registers_argument = 0; registers_argument < 8; registers_argument++) {
			registers_count = registers_exceptions = 3;
			try { registers_enter(functions[n].call); } catch (int thrown) { printf("result %%d is thrown\n", thrown); }
			printf("result of %%s with %%d\n", functions[n].name, registers_argument);
		}
}
`

// TestRandomRegisterAssembly converts random functions in assembly and runs them beside
// their twins. Most are refused: their registers hold one function here and another there.
// The others have to do the same as their twins, whose stubs tell where each call is.
func TestRandomRegisterAssembly(t *testing.T) {
	t.Parallel()
	c := amd64Compiler(toolchains.GCC)
	c.need(t)
	directory, count := t.TempDir(), tools.Cases(t, 400)
	var objects, names []string
	old := map[string][]byte{}
	for seed := range count {
		a := newRandomAssembly(uint64(seed))
		source := filepath.Join(directory, a.name+".s")
		disk.Write(t, source, a.source())
		o := strings.TrimSuffix(source, ".s") + ".o"
		tools.Must(t, "as", "-o", o, source)
		old[o], objects, names = disk.Read(t, o), append(objects, o), append(names, a.name)
	}
	out, _ := tools.Try(converter, append([]string{"--no-stapsdt"}, objects...)...)
	var accepted, twins, converted []string
	for i, o := range objects {
		if bytes.Equal(disk.Read(t, o), old[o]) {
			if !strings.Contains(out, o+":") && bytes.Contains(old[o], []byte("__dtrace_")) {
				t.Errorf("%s is unchanged, and nothing says why", o)
			}
			continue
		}
		twin := strings.TrimSuffix(o, ".o") + ".twin.o"
		expect.OK(t, os.WriteFile(twin, old[o], 0o666))
		accepted, twins, converted = append(accepted, names[i]), append(twins, twin), append(converted, o)
	}
	t.Logf("%d of %d functions are converted", len(accepted), count)
	if len(accepted)*8 < count {
		t.Error("too few to prove anything")
	}
	harness := filepath.Join(directory, "harness.cc")
	disk.Write(t, harness, fmt.Sprintf(registersHarness, "void "+strings.Join(accepted, "(void), ")+"(void);", "FUNCTION("+strings.Join(accepted, "), FUNCTION(")+")"))
	compareAssembly(t, harness, twins, converted)
}

// compareAssembly links and runs both programs.
func compareAssembly(t *testing.T, harness string, twins, converted []string) {
	t.Helper()
	plain := compiler{machine: amd64, cc: toolchains.GCC, flags: []string{"-O2", "-fno-pic"}}
	twin, got := harness+".twin", harness+".got"
	tools.Must(t, "g++", slices.Concat([]string{"-no-pie", "-o", twin, harness, plain.object(t, "registersmain.c", "-DSTUBS")}, twins)...)
	tools.Must(t, "g++", slices.Concat([]string{"-no-pie", "-o", got, harness, plain.object(t, "registersmain.c")}, converted)...)
	said := tools.Must(t, twin)
	expect.Equal(t, results(said), tools.Must(t, got), "converted it prints")
	checkReturns(t, openImage(t, twin), said, openImage(t, got).records(t, pairs))
	for _, l := range list(t, got) {
		expect.Equal(t, "disabled", l.State, "%+v", l)
	}
}
