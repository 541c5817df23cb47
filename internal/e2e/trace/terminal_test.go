package trace

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// terminal is a shell on a terminal of its own.
type terminal struct {
	*os.File
	shell int // its process ID
	mutex sync.Mutex
	out   strings.Builder
	seen  int
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	tools.Need(t, "bash")
	master := expect.Value(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	expect.OK(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number := expect.Value(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN))(t)
	slave := expect.Value(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	defer slave.Close()
	shell := exec.Command("bash", "--norc", "--noediting", "-i")
	shell.Env = append(os.Environ(), "PS1=", "TERM=dumb", "PAGER=")
	shell.Stdin, shell.Stdout, shell.Stderr = slave, slave, slave
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	expect.OK(t, shell.Start())
	term := &terminal{File: master, shell: shell.Process.Pid}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			term.mutex.Lock()
			term.out.Write(buffer[:n])
			term.mutex.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		shell.Process.Kill()
		shell.Wait()
		master.Close()
	})
	return term
}

// send types a text, and waits until the terminal shows another.
func (term *terminal) send(t *testing.T, text, want string) {
	t.Helper()
	expect.Value(term.WriteString(text))(t)
	expect.Soon(t, func() bool {
		term.mutex.Lock()
		defer term.mutex.Unlock()
		at := strings.Index(term.out.String()[term.seen:], want)
		if at >= 0 {
			term.seen += at + len(want)
		}
		return at >= 0
	})
}

// waitStopped waits until all processes of the shell's jobs have stopped. The shell says so when its child has; one that is late still reads what is
// typed next.
func (term *terminal) waitStopped(t *testing.T) {
	t.Helper()
	expect.Soon(t, func() bool {
		paths := expect.Value(filepath.Glob("/proc/[0-9]*/stat"))(t)
		return !slices.ContainsFunc(paths, func(path string) bool {
			text, _ := os.ReadFile(path)
			fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // state, parent, group, session
			return len(fields) > 3 && fields[3] == strconv.Itoa(term.shell) && fields[2] != fields[3] && !strings.Contains("Tt", fields[0])
		})
	})
}

// A traced program has the terminal: it reads lines, is stopped and continued by the shell, and gets Ctrl-C. So has a pager.
func TestTerminal(t *testing.T) {
	t.Parallel()
	needPtrace(t)
	for _, flags := range []string{"-c", "-c -f"} {
		term := openTerminal(t)
		traced := converter + " trace " + flags + " -- "
		term.send(t, traced+"sed -u s/x/yy/\n", traced)
		term.send(t, "axb\n", "ayyb")
		term.send(t, "\x1a", "Stopped")
		term.waitStopped(t)
		term.send(t, "echo in the $((1 + 1))nd line\n", "in the 2nd line")
		term.send(t, "fg\n", "sed")
		term.send(t, "cxd\n", "cyyd")
		term.send(t, "\x04", " hits, 0 dropped")
		term.send(t, "echo status $?\n", "status 0")
		// The inner shell says it, as a Ctrl-C between a shell's fork and the child's exec is lost without a tracer, too.
		term.send(t, traced+`sh -c 'sh -c "echo begun; exec sleep 100"; true'`+"\n", "\nbegun")
		term.send(t, "\x03", " hits, 0 dropped")
		term.send(t, "echo status $?\n", "status 130")
		term.send(t, "seq 100000 100500 | "+traced+"sh -c 'read x </dev/tty; head -n 3'\n", "seq")
		term.send(t, "\n", "100002")
		term.send(t, "echo status $?\n", "status 0")
	}
}
