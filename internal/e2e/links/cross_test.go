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
	for _, m := range foreign {
		runCombinations(t, every([]compiler{
			crossCompiler(m, toolchains.GCC, "-O2"),
			crossCompiler(m, toolchains.Clang, "-Os", "-ffunction-sections"),
		}, layouts, modes))
	}
}

// TestRiscv64WithoutRelaxation links what compilers say must not be relaxed.
func TestRiscv64WithoutRelaxation(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(riscv64, toolchains.GCC, "-O2", "-mno-relax"),
		crossCompiler(riscv64, toolchains.OldClang, "-Os", "-mno-relax"),
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}
