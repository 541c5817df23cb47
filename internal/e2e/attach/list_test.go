package attach

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// probes returns the names of the test program's probes, made by a format of provider
// and name, and sorted.
func probes(format string) []string {
	var all []string
	for name := range wantArgs {
		provider, name, _ := strings.Cut(name, ":")
		all = append(all, fmt.Sprintf(format, provider, name))
	}
	slices.Sort(all)
	return all
}

// found collects what a pattern matches in the output of a tool, each once.
func found(pattern, out string) []string {
	var all []string
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(out, -1) {
		all = append(all, m[1])
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func TestTplistLists(t *testing.T) {
	tools.Need(t, "tplist-bpfcc")
	exe := compileProgram(t, gcc, "-g").executable(t)
	got := found(`(?m)^\S* (\w+:\S+)$`, tools.Must(t, "tplist-bpfcc", "-l", exe))
	expect.Equal(t, probes("%s:%s"), got)
}

func TestPerfLists(t *testing.T) {
	tools.Need(t, "perf")
	exe := compileProgram(t, gcc, "-g").executable(t)
	cache := t.TempDir()
	tools.Must(t, "perf", "--buildid-dir", cache, "buildid-cache", "--add", exe)
	got := found(`(?m)^\s*(sdt_\S+) `, tools.Must(t, "perf", "--buildid-dir", cache, "list", "sdt"))
	expect.Equal(t, probes("sdt_%s:%s"), got)
}

// stapList returns what stap lists of a program for a pattern of marks. It wants the
// headers of some kernel, without which it does nothing.
func stapList(t *testing.T, flag, exe, marks string) string {
	t.Helper()
	tools.Need(t, "stap")
	headers, err := filepath.Glob("/lib/modules/*/build/.config")
	if err != nil || len(headers) == 0 {
		tools.Unavailable(t, "no headers of a kernel")
	}
	release := strings.Split(headers[0], "/")[3]
	stap := tools.Command{Env: []string{"SYSTEMTAP_DIR=" + t.TempDir()}}
	return stap.Must(t, "stap", "-r", release, flag, fmt.Sprintf("process(%q).%s", exe, marks))
}

func TestStapLists(t *testing.T) {
	exe := compileProgram(t, gcc, "-g").executable(t)
	out := stapList(t, "-L", exe, `provider("*").mark("*")`)
	got := found(`(?m)\.(provider\("\w+"\)\.mark\("\S+"\))`, out)
	expect.Equal(t, probes(`provider("%s").mark("%s")`), got)
	if want := `mark("done") $arg1:long $arg2:long $arg3:long $arg4:long`; !strings.Contains(out, want) {
		t.Errorf("got\n%s, want %s", out, want)
	}
}

// TestStapFinds names a probe in both ways that stap takes for a name with dashes.
func TestStapFinds(t *testing.T) {
	exe := compileProgram(t, gcc, "-g").executable(t)
	for _, name := range []string{"end__of__line", "end-of-line"} {
		out := stapList(t, "-l", exe, fmt.Sprintf("mark(%q)", name))
		expect.Contains(t, out, `mark("end__of__line")`, "mark(%q)", name)
	}
}
