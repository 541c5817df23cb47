package header

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// The agent compiles without a warning for all machines, in C and in C++.
func TestAgentCompiles(t *testing.T) {
	source := filepath.Join(t.TempDir(), "agent")
	const text = "#include <sdt_agent.h>\n#include <sdt.h>\nint main(void) { return sdt_agent_start() < 0; }\n"
	disk.Write(t, source+".c", text)
	disk.Write(t, source+".cc", text)
	for _, language := range []struct{ compilers, standards, flags []string }{
		{compilers((*toolchains.Machine).CC), []string{"-std=c99", "-std=gnu17"}, []string{source + ".c"}},
		{compilers((*toolchains.Machine).CXX), []string{"-std=c++11", "-std=c++20"}, []string{source + ".cc"}},
	} {
		for _, compiler := range language.compilers {
			for _, standard := range language.standards {
				words := append(strings.Fields(compiler), "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion", "-Wcast-qual", "-Wundef", "-Werror",
					standard, "-I"+include, "-c", "-o", "/dev/null")
				tools.Need(t, words[0])
				tools.Must(t, words[0], append(words[1:], language.flags...)...)
			}
		}
	}
}

// agentRun is how the program of the agent is made, and how its sites are armed.
type agentRun struct {
	machine *toolchains.Machine
	cc      toolchains.Compiler
	flags   string
	linker  string
	ways    map[string]string // by probe
	cpu     string            // of the emulator, "" for its own choice
}

func (r agentRun) String() string {
	return fmt.Sprint(r.machine.Name, " ", r.cc.Name, " ", r.flags, " ", r.linker)
}

// agentRuns are those of machines that arm calls. An emulator does not see that the file of a memory changes code, so the agent
// makes code writable there.
func agentRuns() []agentRun {
	jumps := map[string]string{"plain": "jump", "all-types": "jump"}
	breakpoints := map[string]string{"plain": "breakpoint", "all-types": "breakpoint"}
	const emulated = " -DSDT_AGENT_MPROTECT"
	return []agentRun{
		{toolchains.AMD64, toolchains.GCC, "-O2", "bfd", jumps, ""},
		{toolchains.AMD64, toolchains.GCC, "-O0", "gold", jumps, ""},
		{toolchains.AMD64, toolchains.Clang, "-O2", "lld", jumps, ""},
		{toolchains.AMD64, toolchains.Clang, "-O1 -DSDT_CALLS", "mold", breakpoints, ""},
		{toolchains.AMD64, toolchains.GCC, "-O2 -DSDT_CALLS -DSDT_AGENT_MPROTECT", "bfd", breakpoints, ""},
		{toolchains.ARM64, toolchains.GCC, "-O2" + emulated, "bfd", jumps, "cortex-a72"},
		{toolchains.ARM64, toolchains.GCC, "-O2 -g" + emulated, "bfd", breakpoints, "max"}, // a jump would not save the registers of SVE
		{toolchains.ARM64, toolchains.GCC, "-O1 -DSDT_CALLS" + emulated, "bfd", map[string]string{"all-types": "jump"}, "cortex-a72"},
	}
}

// A stripped program switches its probes on and off while threads fire them, and load and unload a library.
func TestAgent(t *testing.T) {
	for _, r := range agentRuns() {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			l := r.machine.Linker(r.linker)
			tools.Need(t, append(r.machine.CC(r.cc)[:1], r.machine.Tool("strip"), l.Path)...)
			r.machine.Need(t)
			directory := t.TempDir()
			for _, name := range []string{"agent", "agentlibrary"} {
				words := append(r.machine.CC(r.cc), append(strings.Fields(r.flags), "-fPIC", "-I"+include)...)
				tools.Must(t, words[0], append(words[1:], "-c", "testdata/"+name+".c", "-o", filepath.Join(directory, name+".o"))...)
				tools.Must(t, converter, filepath.Join(directory, name+".o"))
			}
			program, library := filepath.Join(directory, "agent"), filepath.Join(directory, "agentlibrary.so")
			driver := r.machine.CC(r.cc)
			driver = append(driver, "-B"+tools.Driver(t, l.Path))
			tools.Must(t, driver[0], append(driver[1:], "-o", program, program+".o", "-lpthread", "-ldl")...)
			tools.Must(t, driver[0], append(driver[1:], "-shared", "-o", library, filepath.Join(directory, "agentlibrary.o"))...)
			tools.Must(t, r.machine.Tool("strip"), "-s", program, library)
			milliseconds := 500 * tools.Cases(t, 1)
			words := append([]string{"env", "QEMU_CPU=" + cmp.Or(r.cpu, "max")}, r.machine.Command(program, library, strconv.Itoa(milliseconds))...)
			out := tools.Must(t, words[0], words[1:]...)
			ways := map[string]string{}
			for _, match := range regexp.MustCompile(`(?m)^(\S+) by (\S+)$`).FindAllStringSubmatch(out, -1) {
				ways[match[1]] = match[2]
			}
			for probe, way := range r.ways {
				expect.Equal(t, way, ways[probe], "%s", probe)
			}
			for _, want := range []string{
				`(?m)^site agent:agent:all_types(\.\S+)?:all-types \S+ semaphore call\(int; const char \*; long; unsigned char; short\)$`,
				`(?m)^site agent:agent:plain(\.\S+)?:plain \S+ call\(int\)$`, `(?m)^0 faults$`,
			} {
				if !regexp.MustCompile(want).MatchString(out) {
					t.Errorf("no %s in:\n%s", want, out)
				}
			}
		})
	}
}
