package links

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestBreakpoints counts what stops at each recorded address, per probe: as
// often as the stubs of the unconverted twin are entered.
func TestBreakpoints(t *testing.T) {
	for _, c := range here(
		amd64Compiler(toolchains.GCC, "-O2"),
		amd64Compiler(toolchains.Clang, "-Os"),      // with conditional tail calls
		crossCompiler(arm, toolchains.GCC, "-O2"),   // of Thumb
		crossCompiler(arm, toolchains.Clang, "-Os"), // of A32
		crossCompiler(loong64, toolchains.GCC, "-O2"),
		crossCompiler(ppc64, toolchains.GCC, "-O2"),
		crossCompiler(ppc64le, toolchains.GCC, "-O2"),
		crossCompiler(s390x, toolchains.GCC, "-O2"),
		crossCompiler(s390x, toolchains.Clang, "-Os"),
	) {
		t.Run(c.String(), func(t *testing.T) {
			c.parallel(t)
			checkBreakpoints(t, c)
		})
	}
}

func checkBreakpoints(t *testing.T, c compiler) {
	bfd, mode := c.machine.Linker("bfd"), modeExe
	if !c.machine.Native() {
		mode = modeStatic // gdb need not find the libraries
	}
	p := compileProgram(t, c, pairs, false)
	twin := expect.Value(mode.link(p, bfd, nil, p.twin()))(t)
	got := expect.Value(mode.link(p, bfd, nil, p.converted(t)))(t)
	want := map[string]int{}
	stubs := map[uint64]string{}
	im := openImage(t, twin.image)
	for _, f := range im.funcs {
		if stub := stubName.FindStringSubmatch(f.Name); stub != nil {
			stubs[f.Value] = stub[1] + " " + stub[2]
		}
	}
	for addr, n := range hits(t, c.machine, twin.exe, stubs) {
		want[stubs[addr]] += n
	}
	places := map[uint64]string{}
	both := map[string]bool{} // those that have a site which is reached on either condition
	im = openImage(t, got.image)
	for _, s := range im.records(t, pairs) {
		name := s.kind + " " + s.id
		places[s.addr] = name
		code := im.bytes(t, s.addr, 2)
		both[name] = both[name] || c.machine == s390x && s.kind == "isenabled" && code[0] == 0xc0 && code[1] != 0xf4 // brcl to the helper
	}
	have := map[string]int{}
	for addr, n := range hits(t, c.machine, got.exe, places) {
		have[places[addr]] += n
	}
	for _, name := range stubs {
		if have[name] != want[name] && !(both[name] && have[name] > want[name]) {
			t.Errorf("%s: %d hits of its sites, but %d of the twin's stub", name, have[name], want[name])
		}
	}
	if want["probe calls___cond"] == 0 || want["isenabled calls___value"] == 0 {
		t.Errorf("the twin's stubs are not entered: %v", want)
	}
}

// hits runs a program under gdb, with a breakpoint at each address that never
// stops it, and returns how often each was hit.
func hits(t *testing.T, m *machine, exe string, places map[uint64]string) map[uint64]int {
	t.Helper()
	gdb, stop, run := "gdb", "break", "run >/dev/null\n"
	var script strings.Builder
	if !m.Native() {
		// gdb takes a stop that QEMU reports for one of a software breakpoint before it.
		gdb, stop, run = "gdb-multiarch", "hbreak", "continue\n"
		fmt.Fprintf(&script, "target remote %s\n", m.WaitForGDB(t, exe, ""))
	}
	numbers := map[int]uint64{}
	for addr := range places {
		numbers[len(numbers)+1] = addr
		fmt.Fprintf(&script, "%s *%#x\nignore %d 1000000\n", stop, addr, len(numbers))
	}
	script.WriteString(run + "info breakpoints\n")
	out := tools.GDB(t, gdb, exe, script.String())
	if !strings.Contains(out, "exited normally") {
		t.Fatalf("gdb: %s", tools.Shortened(out))
	}
	count := map[uint64]int{}
	number := 0
	for _, line := range strings.Split(out, "\n") {
		if match := breakpoint.FindStringSubmatch(line); match != nil {
			number, _ = strconv.Atoi(match[1])
		}
		if match := alreadyHit.FindStringSubmatch(line); match != nil {
			count[numbers[number]], _ = strconv.Atoi(match[1])
		}
	}
	return count
}

var (
	breakpoint = regexp.MustCompile(`^(\d+)\s+(?:hw )?breakpoint\s`)
	alreadyHit = regexp.MustCompile(`breakpoint already hit (\d+) times?`)
)
