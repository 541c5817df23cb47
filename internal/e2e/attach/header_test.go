package attach

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// TestHeaderNops has gdb see of tracepoints that are NOPs what the twin's
// stubs get of calls.
func TestHeaderNops(t *testing.T) {
	tools.Need(t, "gdb")
	for _, c := range []compiler{gcc, clang} {
		want := compileProgram(t, c, "-g").calls(t, 3)
		compileProgram(t, c, "-g", "-USDT_CALLS").underGDB(t, want)
	}
}

var orders = regexp.MustCompile("(?s)```c\n(#include <unistd.h>.*?)```")

// readme makes the program of the README with the guard that it describes, in a directory of its
// own.
func readme(t *testing.T, compiler string) string {
	t.Helper()
	tools.Need(t, compiler)
	text := string(disk.Read(t, tools.Root("README.md")))
	const guard = "if (DTRACE_PROBE_ENABLED(shop___placed))"
	source := orders.FindStringSubmatch(text)
	if source == nil || !strings.Contains(text, "`"+guard+"`") {
		t.Fatal("the README has no such program")
	}
	guarded := strings.Replace(source[1], "DTRACE_PROBE2(", guard+"\n\tDTRACE_PROBE2(", 1)
	dir := t.TempDir()
	disk.Write(t, dir+"/orders.c", guarded)
	tools.Must(t, compiler, "-O2", "-I"+include, "-c", "-o", dir+"/orders.o", dir+"/orders.c")
	tools.Must(t, converter, dir+"/orders.o")
	tools.Must(t, compiler, "-o", dir+"/orders", dir+"/orders.o")
	return dir + "/orders"
}

// TestReadme has tracers fire a probe behind a test that only they pass.
func TestReadme(t *testing.T) {
	want := []string{"1 tea", "2 milk"}
	for _, compiler := range []string{"gcc", toolchains.LLVM("clang")} {
		exe := readme(t, compiler)
		t.Run(compiler+"/gdb", func(t *testing.T) {
			t.Parallel()
			tools.Need(t, "gdb")
			script := "break -probe-stap shop:placed\ncommands\nsilent\n" +
				"printf \"> %d %s\\n\", $_probe_arg0, (char *)$_probe_arg1\ncontinue\nend\nrun tea milk\n"
			expect.Equal(t, want, underGDB(t, "gdb", script, exe))
			// A breakpoint elsewhere is not a tracer.
			script = "break main\nrun tea milk\n" + "printf \"> %d\\n\", *(unsigned short *)&shop_placed_semaphore\n"
			expect.Equal(t, []string{"0"}, underGDB(t, "gdb", script, exe))
		})
		t.Run(compiler+"/bpftrace", func(t *testing.T) {
			t.Parallel()
			tools.NeedUprobes(t)
			out, err := tools.Try("bpftrace", "-e", `usdt:`+exe+`:shop:placed { printf("> %d %s\n", arg0, str(arg1)); }`, "-c", exe+" tea milk")
			var got []string
			for _, m := range reported.FindAllStringSubmatch(out, -1) {
				got = append(got, m[1])
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s%v\n%s", diff, err, strings.TrimSpace(out))
			}
		})
	}
}
