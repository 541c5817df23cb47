package states

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// A process whose stripped library is gone, and whose memory alone can be read, has the probes and functions of the
// file that was linked.
func TestProcessWithoutFile(t *testing.T) {
	m := toolchains.AMD64
	tools.Need(t, append(m.Tools("gcc", "strip"), toolchains.LLVM("llvm-strip"), "setpriv")...)
	if os.Getuid() != 0 {
		t.Skip("only root's map_files have to be closed") // others cannot open them anyhow
	}
	f := newDirectory(t)
	f.write("lib.c", `
void __dtrace_probe_lib___first(int), __dtrace_probe_lib___second(int); int __dtrace_isenabled_lib___first(void);
static volatile int sum;
static __attribute__((noinline)) void inner(int n) { if (__dtrace_isenabled_lib___first()) __dtrace_probe_lib___first(n); sum += n; }
int outer(int n) { inner(n); __dtrace_probe_lib___second(n); return sum; }
`)
	f.write("main.c", `
#include <stdio.h>
int outer(int);
int main(void) { printf("%d\n", outer(3)); fflush(stdout); return getchar() == 77; }
`)
	f.must(m.Tool("gcc"), "-O2", "-fPIC", "-c", "lib.c", "main.c")
	f.convert("lib.o")
	f.convert("stubs", "-o", "probes.o", "lib.o")
	for _, l := range m.Newest() {
		tools.Need(t, l.Path)
		f.must(m.Tool("gcc"), "-B"+tools.Driver(t, l.Path), "-shared", "-o", "liblib.so", "lib.o", "probes.o")
		f.must(m.Tool("gcc"), "-o", "main", "main.o", "-L.", "-llib", "-Wl,-rpath,"+f.path)
		whole := f.sitesOf("liblib.so")
		f.must(toolchains.LLVMPrograms()+"/llvm-strip", "--strip-sections", "liblib.so")
		program := tools.StartCommand(t, exec.Command("setpriv", "--bounding-set=-all", f.file("main")))
		for range program.Lines() {
			break
		}
		expect.OK(t, os.Remove(f.file("liblib.so")))
		got := tools.Command{}.Result(t, "setpriv", "--bounding-set=-all", converter, "list", "--json", "--pid", fmt.Sprint(program.Process.Pid))
		if !strings.Contains(got.Stderr, "liblib.so: deleted since it was mapped: read from memory") {
			t.Errorf("%s: %s", l.Name, got.Stderr)
		}
		found := map[string]int{}
		for _, p := range listjson.Probes(t, got.Stdout) {
			for _, s := range p.Sites {
				found[fmt.Sprintf("%s %s %s %#x %s", p.Name, s.Kind, s.Function, s.FunctionOffset, s.State)]++
				if !s.Recorded || p.Provider != "lib" {
					t.Errorf("%s: %+v", l.Name, s)
				}
			}
		}
		want := map[string]int{}
		for _, s := range whole {
			want[fmt.Sprintf("%s %s %s %#x %s", s.name, s.Kind, s.Function, s.FunctionOffset, s.State)]++
		}
		expect.Equal(t, want, found, "%s", l.Name)
		program.End()
	}
}
