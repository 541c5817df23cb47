package providers

import (
	"os"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// trace starts bpftrace for all processes, and returns what ends it and gives what it prints.
func trace(t *testing.T, script string) (end func() string) {
	t.Helper()
	const ready = "it reads events"
	tracer := tools.Start(t, "bpftrace", "-B", "line", "-e", script+"interval:ms:100 { printf(\""+ready+"\\n\"); }")
	t.Cleanup(func() { tracer.Process.Kill() }) // before Start's own, which waits
	tracer.Until(t, ready)
	return func() string {
		t.Helper()
		expect.OK(t, tracer.Process.Signal(os.Interrupt))
		var out strings.Builder
		for line := range tracer.Lines() {
			out.WriteString(line + "\n")
		}
		return out.String()
	}
}
