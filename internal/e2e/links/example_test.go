package links

import (
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// The example's makefile compares the converted program with the other.
func TestCProgramExample(t *testing.T) {
	tools.Need(t, "make", "gcc", "g++")
	out := tools.Must(t, "make", "-C", tools.Root("examples", "c-program"), "SDTCONVERT="+converter,
		"BUILD="+filepath.Join(t.TempDir(), "build"), "CC=gcc", "CXX=g++", "check")
	for _, want := range []string{"serve done\n", "queue_get get\n", "queue_close closed\n", "work expensive\n"} {
		expect.Contains(t, out, want)
	}
}
