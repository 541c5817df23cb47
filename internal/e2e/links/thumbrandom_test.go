package links

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// thumbProgram writes functions that return the result of an is-enabled test on conditions, so that
// compilers may make the test a conditional tail call.
type thumbProgram struct {
	*rand.Rand
	strings.Builder
}

// condition is cheap, so that compilers may prefer predicated instructions to a jump.
func (p *thumbProgram) condition() string {
	operands := []string{"a", "b", "u", "*q", "(int)d", "7", "0"}
	return fmt.Sprintf("%s %s %s", operands[p.IntN(5)], []string{"<", ">", "==", "!=", "<=", ">="}[p.IntN(6)], operands[p.IntN(len(operands))])
}

// result is returned; most are tests.
func (p *thumbProgram) result() string {
	switch p.IntN(8) {
	case 0:
		return strconv.Itoa(p.IntN(300))
	case 1:
		return "thumb_other(a + 1)"
	case 2:
		return fmt.Sprintf("(%s && __dtrace_isenabled_thumb___one())", p.condition())
	case 3:
		return fmt.Sprintf("(%s ? __dtrace_isenabled_thumb___one() : %s)", p.condition(), []string{"1", "a", "thumb_other(b)"}[p.IntN(3)])
	}
	return "__dtrace_isenabled_thumb___one()"
}

func (p *thumbProgram) function(number int) {
	fmt.Fprintf(p, "int thumb_f%d(int a, int b, unsigned u, int *q, double d)\n{\n", number)
	for range p.IntN(4) {
		switch p.IntN(4) {
		case 0:
			fmt.Fprintf(p, "*q = a + %d;\n", p.IntN(1000))
		case 1:
			fmt.Fprintf(p, "switch (b) { case %d: return %s; case 5: a++; break; case 9: return %s; }\n", p.IntN(5), p.result(), p.result())
		default:
			fmt.Fprintf(p, "if (%s) return %s;\n", p.condition(), p.result())
		}
	}
	fmt.Fprintf(p, "return %s;\n}\n", p.result())
}

func (p *thumbProgram) source() string {
	p.WriteString("int __dtrace_isenabled_thumb___one(void);\nint thumb_other(int);\n")
	for i := range 20 {
		p.function(i)
	}
	return p.String()
}

// thumbFlags are those of compilers that decide whether an instruction has a condition of its own.
func (p *thumbProgram) flags() []string {
	flags := []string{"-mthumb", "-w", []string{"-O1", "-O2", "-O3", "-Os", "-Oz"}[p.IntN(5)]}
	for _, flag := range []string{"-fno-omit-frame-pointer", "-mrestrict-it", "-mcpu=cortex-a53", "-fPIC", "-ffunction-sections", "-fno-unwind-tables"} {
		if p.IntN(3) == 0 {
			flags = append(flags, flag)
		}
	}
	return flags
}

// TestThumbTestsAreNoConditionalBranches compiles tests in tail position, at random. Compilers put
// b.w into an IT block, with R_ARM_THM_JUMP24, which converts. None makes the conditional branch of
// R_ARM_THM_JUMP19, which only assembly has, and which is refused.
func TestThumbTestsAreNoConditionalBranches(t *testing.T) {
	count := tools.Cases(t, 24)
	var tests, tails, predicated atomic.Int64
	t.Run("programs", func(t *testing.T) {
		for seed := range count {
			t.Run(strconv.Itoa(seed), func(t *testing.T) {
				t.Parallel()
				p := thumbProgram{Rand: rand.New(rand.NewPCG(uint64(seed), 25))}
				compilers := []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang}
				cc := compilers[seed%len(compilers)]
				c := crossCompiler(arm, cc, p.flags()...)
				c.need(t)
				for _, s := range thumbTests(t, c.compileRandom(t, p.source())) {
					tests.Add(1)
					switch elf.R_ARM(s.typ) {
					case elf.R_ARM_THM_PC22:
					case elf.R_ARM_THM_JUMP24:
						tails.Add(1)
						if s.before>>8 == 0xbf && s.before&0xf != 0 { // it
							predicated.Add(1)
						}
					default:
						t.Errorf("seed %d, %s: a test by relocation type %d", seed, c, s.typ)
					}
				}
			})
		}
	})
	t.Logf("of %d tests %d are tail calls; %d of these are directly behind an it, and none is a conditional branch", tests.Load(), tails.Load(), predicated.Load())
	if predicated.Load() == 0 {
		t.Error("no test is conditional")
	}
}

// compileRandom compiles a program, and checks that the object converts.
func (c compiler) compileRandom(t *testing.T, source string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "random.c")
	disk.Write(t, path, source)
	object := strings.TrimSuffix(path, ".c") + ".o"
	args := c.machine.CC(c.cc)
	tools.Must(t, args[0], append(append(args[1:len(args):len(args)], c.flags...), "-c", path, "-o", object)...)
	for _, flags := range [][]string{{"--layout=pairs"}, {"--stapsdt"}} {
		tools.Must(t, converter, append(flags, "-o", object+".converted.o", object)...)
	}
	return object
}

// thumbTest is a relocation of a test, and the halfword before its field.
type thumbTest struct {
	typ    uint32
	before uint16
}

func thumbTests(t *testing.T, object string) (all []thumbTest) {
	t.Helper()
	o := tools.OpenELF(t, object)
	syms := expect.Value(o.Symbols())(t)
	expect.OK(t, o.EachRelocationOf((*elfreloc.Section).Executable, func(target int, r elfreloc.Relocation) error {
		if syms.Name(int(r.Sym)) != "__dtrace_isenabled_thumb___one" {
			return nil
		}
		test := thumbTest{typ: r.Type}
		if r.Offset >= 2 {
			test.before = binary.LittleEndian.Uint16(expect.Value(o.Bytes(target, r.Offset-2, 2))(t))
		}
		all = append(all, test)
		return nil
	}))
	return all
}
