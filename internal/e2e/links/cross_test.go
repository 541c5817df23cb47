package links

import "testing"

func crossCompiler(m *machine, name string, flags ...string) compiler {
	return compiler{machine: m, name: name, flags: append(flags, "-fPIC")}
}

// TestArm64 and TestRiscv64 link for the other machines, and run under qemu.
func TestArm64(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(arm64, "gcc", "-O2"),
		crossCompiler(arm64, "clang-19", "-Os", "-ffunction-sections"),
	}, layouts, modes))
}

func TestRiscv64(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(riscv64, "gcc", "-O2"),
		crossCompiler(riscv64, "clang-19", "-Os", "-ffunction-sections"),
	}, layouts, modes))
}

// TestRiscv64WithoutRelaxation links what compilers say must not be relaxed.
func TestRiscv64WithoutRelaxation(t *testing.T) {
	runCombinations(t, every([]compiler{
		crossCompiler(riscv64, "gcc", "-O2", "-mno-relax"),
		crossCompiler(riscv64, "clang-14", "-Os", "-mno-relax"),
	}, []layout{pairs}, []mode{modePIE, modeShared}))
}
