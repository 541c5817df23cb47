package check_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/toolchains"
)

// The objects of a link are clean together.
func TestCleanObjects(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.clean("fire.o", "define.o")
		b.clean("--require", "app:::start", "--require", "app::stop:*", "fire.o", "define.o")
	})
}

func TestLiveCallInObjects(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled()
		found := b.finds([]string{
			"live-call define.o stop app___stop",
			"live-call fire.o fire app___start",
			"live-call fire.o fire app___start",
			"live-call fire.o main app___start",
			"live-call fire.o unused app___start",
		}, "fire.o", "define.o")
		for _, f := range found {
			if !strings.HasSuffix(f.Source, "/"+strings.TrimSuffix(f.File, "o")+"c") || f.Line == 0 || f.Section == "" {
				b.Errorf("%+v", f)
			}
		}
		b.clean("--allow", "live-call", "fire.o", "define.o")
	})
}

// storedAddress takes the address of a stub.
const storedAddress = `
#ifdef __cplusplus
extern "C"
#endif
void __dtrace_probe_app___address(int);
void (*stored)(int) = __dtrace_probe_app___address;
`

func TestStubAddress(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("address.c", storedAddress)
		b.compile("address.o", "address.c")
		b.finds([]string{"stub-address address.o  app___address"}, "--allow=undefined-probe", "address.o")
	})
}

// A compiler that loads the stub's address and calls that, or stores it as well.
func TestCallThroughRegister(t *testing.T) {
	for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.Clang} {
		t.Run(cc.Name, func(t *testing.T) {
			b := newBuild(t, toolchain{machine: toolchains.AMD64, cc: cc})
			b.write("far.c", "void __dtrace_probe_app___far(int);\n"+
				"void far(int n, void (**to)(int)) { *to = __dtrace_probe_app___far; __dtrace_probe_app___far(n); }\n"+
				"void once(int n) { __dtrace_probe_app___far(n); }\n")
			b.compile("far.o", "far.c", "-mcmodel=large", "-fno-pic")
			b.finds([]string{"live-call far.o once app___far", "stub-address far.o far app___far"}, "--allow=undefined-probe", "far.o")
			b.write("far.c", "void __dtrace_probe_app___far(int);\nvoid far(int n) { do __dtrace_probe_app___far(n); while (n--); }\n")
			b.compile("far.o", "far.c", "-mcmodel=large", "-fno-pic")
			b.finds([]string{"live-call far.o far app___far"}, "--allow=undefined-probe", "far.o")
			b.convert("far.o")
			b.clean("--allow=undefined-probe", "far.o")
		})
	}
}

// An instruction that calls a stub and has no disabled form.
func TestRefusedCall(t *testing.T) {
	eachNamed(t, map[string]string{
		"amd64-gcc-c":     "call __dtrace_probe_x+4",
		"amd64-clang-cxx": "call __dtrace_probe_x+4",
		"arm-gcc-c":       "bl __dtrace_probe_x+4",
		"arm64-gcc-cxx":   "cbz x0, __dtrace_probe_x",
		"arm64-clang-c":   "tbz x0, #1, __dtrace_probe_x",
		"loong64-gcc-c":   "beqz $a0, __dtrace_probe_x",
		"ppc64-gcc-c":     "beq __dtrace_probe_x",
		"ppc64le-gcc-c":   "bdnz __dtrace_probe_x",
		"riscv64-gcc-c":   "jal __dtrace_probe_x",
		"s390x-gcc-c":     "bras %r14, __dtrace_probe_x",
	}, func(b *build, code string) {
		b.write("a.s", "\t.text\n\t.type odd, %function\nodd:\n\t"+code+"\n\t"+b.code().ret+"\n\t.size odd, .-odd\n")
		b.run(append(b.compiler(), "-c", "-o", "a.o", "a.s")...)
		b.finds([]string{"refused-call a.o odd x"}, "--allow=undefined-probe", "a.o")
	})
}

func TestUndefinedProbe(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.findsProbes([]string{"undefined-probe fire.o app___start"}, "fire.o")
		b.write("function.c", "void function(void) __asm__(\"sdt_app___start\");\nvoid function(void) {}\n") // is no probe object
		b.compile("function.o", "function.c")
		b.findsProbes([]string{"undefined-probe fire.o app___start"}, "fire.o", "function.o")
		b.convert("stubs", "-o", "stubs.o", "fire.o")
		b.clean("fire.o", "stubs.o")
	})
}

// What a library exports is defined, but not for relative records.
func TestProbeOfLibrary(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compile("fire.o", "fire.c")
		b.run("cp", "fire.o", "relative.o")
		b.compile("define.o", "define.c")
		b.convert("fire.o", "define.o")
		b.convert("--layout=relative", "relative.o")
		b.eachLinker(func(b *build, l toolchains.Linker) {
			b.link(l, "libdefine.so", "-shared", "define.o")
			b.clean("fire.o", "libdefine.so")
			b.findsProbes([]string{"undefined-probe relative.o app___start"}, "relative.o", "libdefine.so")
			b.link(l, "prog", "fire.o", "libdefine.so", "-Wl,-rpath,$ORIGIN")
			b.clean("prog", "libdefine.so")
			b.findsProbes([]string{"unresolved-probe prog app___start"}, "prog")
		})
	})
}

func TestUnusedProbe(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.finds([]string{"unused-probe define.o  app___start"}, "define.o")
	})
}

func TestDuplicateProbe(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.run("cp", "define.o", "again.o")
		b.finds([]string{"duplicate-probe again.o  app___start", "duplicate-probe again.o  app___stop"}, "fire.o", "define.o", "again.o")

		// Another symbol, but the name that readers see.
		b.write("other.c", `
#include "program.h"
SDT_PROVIDER_DECLARE(app);
SDT_PROBE_DEFINE1(app, , , other, "int");
C void use_other(int n) { SDT_PROBE1(app, , , other, n); }
`)
		b.compile("other.o", "other.c")
		b.convert("other.o")
		b.clean("other.o", "fire.o", "define.o")
	})
}

// threeArguments has a tracepoint with two arguments more than the definition.
const threeArguments = `
#include "program.h"
SDT_PROBE_DECLARE(app, , , start);
C void three(int n) { SDT_PROBE3(app, , , start, n, n, n); }
`

// A probe with as many arguments as its definition has types, or not.
func TestArgumentMismatch(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		b.write("three.c", threeArguments)
		b.compile("three.o", "three.c")
		want := []string{"argument-mismatch three.o three app___start"}
		b.finds(append(want, "live-call three.o three app___start"), "fire.o", "define.o", "three.o")
		b.convert("three.o")
		b.finds(want, "fire.o", "define.o", "three.o")
		// Without the definition, the calls differ from each other.
		b.message(b.finds(want, "--allow=undefined-probe", "fire.o", "three.o"), "a call has 3 arguments, and calls in fire.o have ")
		b.run(toolchains.LLVM("llvm-objcopy"), "--strip-debug", "three.o")
		b.clean("fire.o", "define.o", "three.o")
		// A nop needs no debug information, before and after the conversion.
		b.compile("three.o", "three.c", "-USDT_CALLS", "-g0")
		if b.machine == toolchains.ARM || b.machine == toolchains.I386 {
			return // where there are calls
		}
		b.finds(append(want, "not-converted three.o three app___start"), "fire.o", "define.o", "three.o")
		b.convert("three.o")
		b.finds(want, "fire.o", "define.o", "three.o")
	})
}

// wrongArguments has several calls with too many arguments; the compiler inlines none of them.
const wrongArguments = `#include "program.h"
SDT_PROVIDER_DEFINE(many);
SDT_PROBE_DEFINE1(many, , , put, "int");
C void one(int n) { SDT_PROBE1(many, , , put, n); }
C void twice(int n)
{
	SDT_PROBE2(many, , , put, n, n);
	SDT_PROBE1(many, , , put, n);
	SDT_PROBE4(many, , , put, n, 3, 4, 5);
}
C int more(int n)
{
	SDT_PROBE3(many, , , put, n, n + 1, 2);
	if (n > 7)
		SDT_PROBE2(many, , , put, 4, 5);
	return n;
}
C void right(int n) { SDT_PROBE1(many, , , put, n + 1); }
int main(int argc, char **argv) { (void)argv; one(argc); twice(argc); right(more(argc)); }
`

// Every call with a wrong number of arguments is a finding, and no other call.
func TestEveryArgumentMismatch(t *testing.T) {
	want := []string{"argument-mismatch more 2", "argument-mismatch more 3", "argument-mismatch twice 2", "argument-mismatch twice 4"}
	eachToolchain(t, func(b *build) {
		b.write("many.c", wrongArguments)
		flags := [][]string{{"-O2"}, {"-O0"}, {"-USDT_CALLS"}, {"-USDT_CALLS", "-g1"}}
		if b.cc == toolchains.Clang { // which describes one of the calls
			flags = flags[2:]
		} else if b.cxx { // nor has GCC declarations in blocks
			flags = slices.Delete(flags, 1, 2)
		}
		if b.machine == toolchains.ARM || b.machine == toolchains.I386 { // where there are calls
			flags = slices.DeleteFunc(flags, func(f []string) bool { return f[0] == "-USDT_CALLS" })
		}
		for _, f := range flags {
			b.compile("many.o", "many.c", f...)
			mismatches := func(file string) {
				b.Helper()
				b.compare(want, func(f finding) string {
					var n int
					if _, err := fmt.Sscanf(f.Message, "a call has %d arguments, and the definition in ", &n); err != nil {
						b.Error(f.Message)
					}
					return fmt.Sprintf("%s %s %d", f.Rule, strings.NewReplacer("_Z5twicei", "twice", "_Z4morei", "more").Replace(f.Function), n)
				}, "--allow=live-call", "--allow=not-converted", file)
			}
			mismatches("many.o")
			b.convert("--stapsdt", "many.o")
			mismatches("many.o")
			b.eachLinker(func(b *build, l toolchains.Linker) {
				b.link(l, "prog", "many.o")
				mismatches("prog")
				b.link(l, "prog", "many.o", "-pie")
				mismatches("prog")
			})
		}
	})
}

func TestMixedLayout(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compiled()
		b.convert("fire.o")
		b.convert("--layout=freebsd", "define.o")
		b.finds([]string{"mixed-layout define.o  "}, "fire.o", "define.o")
	})
}

func TestMixedFlags(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		for _, flag := range []string{"--stapsdt", "--dtrace", "--drop-relocations"} {
			b.compile("other.o", "define.c")
			b.convert(flag, "other.o")
			b.message(b.finds([]string{"mixed-flags other.o  "}, "fire.o", "other.o"), flag)
		}
		b.run(toolchains.LLVM("llvm-objcopy"), "--set-section-flags=sdt_instances_set=alloc,readonly,data", "define.o", "flags.o")
		b.message(b.finds([]string{"mixed-flags flags.o  "}, "fire.o", "flags.o"), "the flags of sdt_instances_set")
	})
}

func TestLTOObject(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.compile("fire.o", "fire.c", "-flto")
		b.finds([]string{"lto-object fire.o  "}, "fire.o")
		b.write("plain.c", "int plain;\n")
		b.compile("plain.o", "plain.c", "-flto")
		b.clean("--allow=no-probes", "plain.o")
	})
}

func TestMissingProbe(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.program()
		// The id alone does not tell the parts of this one, but its definition does.
		b.write("parts.c", `
#include "program.h"
SDT_PROVIDER_DEFINE(parts);
SDT_PROBE_DEFINE1(parts, mod, func, one__more, "long");
`)
		b.write("use.c", `
#include "program.h"
SDT_PROBE_DECLARE(parts, mod, func, one__more);
C void use(long n) { SDT_PROBE1(parts, mod, func, one__more, n); }
`)
		for _, name := range []string{"parts", "use"} {
			b.compile(name+".o", name+".c")
		}
		b.clean("--allow=live-call", "--require=parts:mod:func:one-more", "parts.o", "use.o")
		b.convert("parts.o", "use.o")
		b.clean("--require=parts:mod:func:one-more", "parts.o", "use.o")
		b.finds([]string{"missing-probe   parts:mod:func:one"}, "--require=parts:mod:func:one", "parts.o", "use.o")
		b.clean("--only=parts:mod:func:one__more", "parts.o", "use.o")
		b.finds([]string{"unlisted-probe   parts:mod:func:one-more"}, "--only=parts:mod:func:one-mire", "--only", "app:::one-more", "parts.o", "use.o")
		b.write("names.txt", "app:::start\napp:::stpo # misspelt\n")
		b.message(b.finds([]string{"unlisted-probe   app:define.o:stop:stop"}, "--only", "@names.txt", "fire.o", "define.o"), "which is not listed; did you mean stpo?")
		b.clean("--only", "app:::*", "fire.o", "define.o")
		b.finds([]string{"missing-probe   app:::gone"}, "--require", "app:::gone", "--require=start", "fire.o", "define.o")
		b.finds([]string{"missing-probe   *::main:stop"}, "--require", "*::main:stop", "fire.o", "define.o")
	})
}

// markedNops are probes that inline assembly marks.
const markedNops = `
	.text
	.globl marked
	.type marked, %function
marked:
990:	nop
	.reloc 990b, BFD_RELOC_NONE, __dtrace_probe_app___marked
	.weak __dtrace_probe_app___marked
	.hidden __dtrace_probe_app___marked
	.pushsection .sdt_operands, "e?", %progbits
	.dc.a 990b
	.asciz ""
	.popsection
	ret
	.size marked, .-marked
`

// A nop that is marked is a call that is still to be converted.
func TestMarkedNop(t *testing.T) {
	eachNamed(t, map[string]string{
		"amd64-gcc-c": ".byte 0x0f,0x1f,0x44,0x00,0x00", "arm-gcc-c": "nop", "arm64-gcc-cxx": "nop", "loong64-gcc-c": "nop",
		"ppc64-gcc-c": "nop", "ppc64le-gcc-c": "nop", "riscv64-gcc-c": ".option norvc; nop; nop", "s390x-gcc-c": "brcl 0, .",
	}, func(b *build, nop string) {
		b.write("a.s", strings.NewReplacer("\tnop\n", "\t"+nop+"\n", "\tret\n", "\t"+b.code().ret+"\n").Replace(markedNops))
		b.run(append(b.compiler(), "-c", "-o", "a.o", "a.s")...)
		b.finds([]string{"not-converted a.o marked app___marked"}, "--allow=undefined-probe", "a.o")
		b.convert("a.o")
		b.clean("--allow=undefined-probe", "a.o")
		b.run(append(b.compiler(), "-c", "-o", "a.o", "a.s")...)
		b.run(toolchains.LLVM("llvm-objcopy"), "--remove-section=.sdt_operands", "a.o")
		b.finds([]string{"refused-call a.o marked app___marked"}, "--allow=undefined-probe", "a.o")
	})
}

// Calls of stubs that headers of provider files for FreeBSD and illumos declare, in an object that dtrace -G has not seen.
func TestCallsOfHeaders(t *testing.T) {
	eachToolchain(t, func(b *build) {
		b.write("perl.c", `
#ifdef __cplusplus
#define C extern "C"
#else
#define C extern
#endif
C void __dtrace_perl___sub__entry(const char *, int);
C void perl(const char *p);
C void perl(const char *p) { __dtrace_perl___sub__entry(p, 1); __asm__ volatile(""); }
`)
		b.compile("perl.o", "perl.c")
		b.message(b.finds([]string{"live-call perl.o perl perl___sub__entry"}, "perl.o"), "refers to __dtrace_perl___sub__entry; give the object to provider -G")
	})
}
