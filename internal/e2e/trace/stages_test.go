package trace

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// A site has one kind at each stage, a call and a NOP of a header the same, and a state that is true.
func TestStages(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	source := write(t, "stage.c", `#include <stdio.h>
#include <unistd.h>
#include <sdt.h>
__attribute__((noinline)) void stage(int i) { DTRACE_PROBE1(shop___stage, int, i); }
int main(void) { puts("ready"); fflush(stdout); for (int i = 0; i < 3000; i++) { stage(i); usleep(1000); } return 0; }
`)
	for _, c := range []struct{ flag, kind, rule string }{
		{"-O2", "probe", "not-converted"}, {"-DSDT_SHORT_NOPS", "probe", "not-converted"}, {"-DSDT_CALLS", "tail", "live-call"},
		{"-DSDT_CALLS -fno-optimize-sibling-calls", "probe", "live-call"},
	} {
		directory := t.TempDir()
		object, program := filepath.Join(directory, "stage.o"), filepath.Join(directory, "stage")
		tools.Must(t, "sh", "-c", fmt.Sprintf(`gcc -O2 %s -I"$0" -c -o "$1" "$2"`, c.flag), include, object, source)
		checkStage := func(state string, command ...string) {
			t.Helper()
			found := regexp.MustCompile(` stage\+0x\w+ +(\S+) +(\S+)`).FindStringSubmatch(tools.Output(t, converter, command...))
			if found == nil || found[1] != c.kind || found[2] != state {
				t.Errorf("%s: %s: got %q, want %s %s", c.flag, command, found, c.kind, state)
			}
		}
		checkStage("unconverted", "inspect", object)
		got := tools.Command{}.Result(t, converter, "check", object)
		expect.Contains(t, got.Stdout, "["+c.rule+"]\n", "%s", c.flag)
		tools.Must(t, converter, object)
		checkStage("disabled", "inspect", object)
		checkStage("disabled", "list", "-v", object)
		tools.Must(t, "gcc", "-o", program, object)
		checkStage("disabled", "list", "-v", program)
		for _, flags := range [][]string{nil, {"--breakpoints"}} {
			running := exec.Command(program)
			out := expect.Value(running.StdoutPipe())(t)
			expect.OK(t, running.Start())
			out.Read(make([]byte, 6))
			pid := fmt.Sprint(running.Process.Pid)
			checkStage("disabled", "list", "-v", "-p", pid)
			tracer := exec.Command(converter, append(append([]string{"trace"}, flags...), "-p", pid)...)
			hits := expect.Value(tracer.StdoutPipe())(t)
			expect.OK(t, tracer.Start())
			hits.Read(make([]byte, 1))
			checkStage("armed", "list", "-v", "-p", pid)
			hits.Close()
			tracer.Process.Signal(os.Interrupt)
			tracer.Wait()
			running.Process.Kill()
			running.Wait()
		}
	}
}
