package providers

import (
	"os"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// attaches reports whether bpftrace can trace a program of this machine, and if not, what it
// says.
var attaches = sync.OnceValue(func() string {
	exe, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	out, err := tools.Try("bpftrace", "-e", "uprobe:"+exe+":main.main { exit(); } BEGIN { printf(\"attached\\n\"); exit(); }")
	if err != nil || !strings.Contains(out, "attached") {
		return "no uprobes on this machine: " + out
	}
	return ""
})

// needUprobes skips a test where bpftrace is there and its kernel attaches nothing.
func needUprobes(t *testing.T) {
	t.Helper()
	tools.Need(t, "bpftrace")
	if why := attaches(); why != "" {
		t.Skip(why)
	}
}

// trace starts bpftrace for all processes, and returns what ends it and gives what it prints.
func trace(t *testing.T, script string) (end func() string) {
	t.Helper()
	const ready = "it reads events"
	tracer := tools.Start(t, "bpftrace", "-B", "line", "-e", script+"interval:ms:100 { printf(\""+ready+"\\n\"); }")
	t.Cleanup(func() { tracer.Process.Kill() }) // before Start's own, which waits
	tracer.Until(t, ready)
	return func() string {
		t.Helper()
		if err := tracer.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		for line := range tracer.Lines() {
			out.WriteString(line + "\n")
		}
		return out.String()
	}
}
