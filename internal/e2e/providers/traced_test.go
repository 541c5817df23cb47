package providers

import (
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// script counts the probes; counted is what it prints for three rounds.
const script = `usdt:%s:shop:order__placed { @[probe] = count(); }
usdt:%s:shop:sent { @[probe] = count(); @sum = sum(arg0); @last = str(arg1); }
usdt:%s:shop:empty { @[probe] = count(); }
usdt:%s:shop:wide { @[probe] = count(); @wide = sum((int32)arg0); }`

var counted = []string{":shop:order__placed]: 15", ":shop:sent]: 3", ":shop:empty]: 3", ":shop:wide]: 3", "@sum: 123", "@wide: 3", "@last: milk"}

// Traced from before it starts, a program counts each probe, and its tests are true; without
// bpftrace they are not.
func TestBPFTrace(t *testing.T) {
	tools.NeedUprobes(t)
	// The others are linked as these are; each start of bpftrace takes a second.
	eachLink(t, []string{"plain", "lto"}, func(t *testing.T, exe string) {
		out := tools.Must(t, "bpftrace", "-e", strings.ReplaceAll(script, "%s", exe), "-c", exe+" 3 milk")
		for _, want := range counted {
			expect.Contains(t, out, want)
		}
	})
}

// gdb finds the probes, raises their semaphores, and reads their arguments.
func TestGDB(t *testing.T) {
	eachLink(t, []string{"plain", "gc"}, func(t *testing.T, exe string) {
		out := tools.GDB(t, "gdb", exe, "break -probe-stap shop:sent\ncommands\nsilent\n"+
			"printf \"> %d %s %d\\n\", $_probe_arg0, (char *)$_probe_arg1, $_probe_argc\ncontinue\nend\nrun 2 milk\n")
		for _, want := range []string{"> 40 milk 2", "> 41 milk 2"} {
			expect.Contains(t, out, want)
		}
		if got := len(regexp.MustCompile(`(?m)^sent is traced$`).FindAllString(out, -1)); got != 2 || strings.Contains(out, "only__tested is traced") {
			t.Errorf("the test of a traced probe is true %d times of 2: %s", got, out)
		}
	})
}
