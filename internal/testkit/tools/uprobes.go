package tools

import (
	"os"
	"strings"
	"sync"
	"testing"
)

// NeedUprobes skips a test where bpftrace is there and the kernel lets it attach to no
// program: no package can change that.
func NeedUprobes(t testing.TB) {
	t.Helper()
	Need(t, "bpftrace")
	if why := attaches(); why != "" {
		t.Skip(why)
	}
}

// attaches reports why bpftrace cannot trace a program of this machine, "" if it can.
var attaches = sync.OnceValue(func() string {
	exe, err := os.Executable()
	if err != nil {
		return err.Error()
	}
	out, err := Try("bpftrace", "-e", "uprobe:"+exe+":main.main { exit(); } BEGIN { printf(\"attached\\n\"); exit(); }")
	if err != nil || !strings.Contains(out, "attached") {
		return "no uprobes on this machine: " + out
	}
	return ""
})
