package toolchains

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/expect"
)

// WaitForGDB starts a program under the emulator, which waits for gdb at a socket. The
// program reads the input.
func (m *Machine) WaitForGDB(t testing.TB, program, input string) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "gdb")
	cmd := exec.Command(m.QEMU, "-g", socket, program)
	cmd.Stdin = strings.NewReader(input)
	expect.OK(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	for range 100 {
		if _, err := os.Stat(socket); err == nil {
			return socket
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("%s makes no socket", m.QEMU)
	return ""
}
