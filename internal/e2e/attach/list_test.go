package attach

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

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

func TestBpftraceLists(t *testing.T) {
	tools.Need(t, "bpftrace")
	exe := compileProgram(t, gcc, "-g").executable(t)
	got := found(`(?m)^usdt:[^:]*:(.*)$`, tools.Must(t, "bpftrace", "-l", "usdt:"+exe+":*"))
	if diff := cmp.Diff(probes("%s:%s"), got); diff != "" {
		t.Error(diff)
	}
}

func TestTplistLists(t *testing.T) {
	tools.Need(t, "tplist-bpfcc")
	exe := compileProgram(t, gcc, "-g").executable(t)
	got := found(`(?m)^\S* (\w+:\S+)$`, tools.Must(t, "tplist-bpfcc", "-l", exe))
	if diff := cmp.Diff(probes("%s:%s"), got); diff != "" {
		t.Error(diff)
	}
}

func TestPerfLists(t *testing.T) {
	tools.Need(t, "perf")
	exe := compileProgram(t, gcc, "-g").executable(t)
	cache := t.TempDir()
	tools.Must(t, "perf", "--buildid-dir", cache, "buildid-cache", "--add", exe)
	got := found(`(?m)^\s*(sdt_\S+) `, tools.Must(t, "perf", "--buildid-dir", cache, "list", "sdt"))
	if diff := cmp.Diff(probes("sdt_%s:%s"), got); diff != "" {
		t.Error(diff)
	}
}

// stapList returns what stap lists of a program for a pattern of marks. It wants the
// headers of some kernel, without which it does nothing.
func stapList(t *testing.T, flag, exe, marks string) (string, error) {
	t.Helper()
	tools.Need(t, "stap")
	headers, err := filepath.Glob("/lib/modules/*/build/.config")
	if err != nil || len(headers) == 0 {
		tools.Unavailable(t, "no headers of a kernel")
	}
	release := strings.Split(headers[0], "/")[3]
	cmd := exec.Command("stap", "-r", release, flag, fmt.Sprintf("process(%q).%s", exe, marks))
	cmd.Env = append(os.Environ(), "SYSTEMTAP_DIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestStapLists(t *testing.T) {
	exe := compileProgram(t, gcc, "-g").executable(t)
	out, err := stapList(t, "-L", exe, `provider("*").mark("*")`)
	if err != nil {
		t.Fatalf("stap: %v\n%s", err, out)
	}
	got := found(`(?m)\.(provider\("\w+"\)\.mark\("\S+"\))`, out)
	if diff := cmp.Diff(probes(`provider("%s").mark("%s")`), got); diff != "" {
		t.Error(diff)
	}
	if want := `mark("done") $arg1:long $arg2:long $arg3:long $arg4:long`; !strings.Contains(out, want) {
		t.Errorf("got\n%s, want %s", out, want)
	}
}

// TestStapFinds names a probe in both ways that stap takes for a name with dashes.
func TestStapFinds(t *testing.T) {
	exe := compileProgram(t, gcc, "-g").executable(t)
	for _, name := range []string{"end__of__line", "end-of-line"} {
		out, err := stapList(t, "-l", exe, fmt.Sprintf("mark(%q)", name))
		if err != nil || !strings.Contains(out, `mark("end__of__line")`) {
			t.Errorf("mark(%q): %v\n%s", name, err, out)
		}
	}
}
