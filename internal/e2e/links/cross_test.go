package links

import (
	"testing"

	"sdtconvert/internal/testkit/toolchains"
)

func crossCompiler(m *machine, cc toolchains.Compiler, flags ...string) compiler {
	return compiler{machine: m, cc: cc, flags: append(flags, "-fPIC")}
}

// TestForeign links for the other machines, and runs under their emulators.
func TestForeign(t *testing.T) {
	var all []combination
	for _, m := range foreign {
		all = append(all, every([]compiler{
			crossCompiler(m, toolchains.GCC, "-O2"),
			crossCompiler(m, toolchains.Clang, "-Os", "-ffunction-sections"),
		}, layouts, modes)...)
	}
	runCombinations(t, all)
}

// TestI386 links what has conditional tail calls, and what calls through the global offset
// table: code that is compiled for a fixed address, and code that is not.
func TestI386(t *testing.T) {
	fixed := []string{"-fno-pic", "-fno-pie"}
	runCombinations(t, every([]compiler{
		{machine: i386, cc: toolchains.GCC, flags: append([]string{"-O2"}, fixed...)},
		{machine: i386, cc: toolchains.OldClang, flags: append([]string{"-Os"}, fixed...)},
		{machine: i386, cc: toolchains.Clang, flags: append([]string{"-O2"}, fixed...)},
	}, []layout{pairs}, []mode{modeExe, modeStatic}))
	runCombinations(t, every([]compiler{
		crossCompiler(i386, toolchains.GCC, "-O2", "-fcf-protection=full"),
		crossCompiler(i386, toolchains.GCC, "-O2", "-fno-plt", "-DNO_REPEAT"),
		crossCompiler(i386, toolchains.OldClang, "-O2"),
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}

// TestLoong64 links what has calls of two instructions, which linkers may make one of, and
// what compilers say must not be relaxed.
func TestLoong64(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(loong64, toolchains.GCC, "-O2", "-mcmodel=medium"),
		crossCompiler(loong64, toolchains.GCC, "-Os", "-mno-relax"),
		crossCompiler(loong64, toolchains.Clang, "-O2", "-mcmodel=medium"),
	}, layouts, []mode{modePIE, modeShared}))
}

// TestRiscv64WithoutRelaxation links what compilers say must not be relaxed.
func TestRiscv64WithoutRelaxation(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(riscv64, toolchains.GCC, "-O2", "-mno-relax"),
		crossCompiler(riscv64, toolchains.OldClang, "-Os", "-mno-relax"),
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}
