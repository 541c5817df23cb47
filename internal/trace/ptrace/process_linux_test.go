package ptrace

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// The heap of a process is found, whatever its name is.
func TestHeap(t *testing.T) {
	tools.Need(t, "sleep")
	path := filepath.Join(t.TempDir(), "a) R 1 (b")
	expect.OK(t, os.WriteFile(path, disk.Read(t, expect.Value(exec.LookPath("sleep"))(t)), 0o755))
	sleep := exec.Command(path, "100")
	expect.OK(t, sleep.Start())
	defer sleep.Wait()
	defer sleep.Process.Kill()
	expect.Soon(t, func() bool {
		maps, brk, err := New(sleep.Process.Pid).Mappings()
		expect.OK(t, err)
		for _, m := range maps {
			if m.Path == "[heap]" {
				expect.Equal(t, m.Start, brk)
				return true
			}
		}
		return false
	})
}
