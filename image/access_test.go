//go:build linux

package image_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/image"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

func TestProcessEnds(t *testing.T) {
	running := start(t, host(t), library(t))
	p := running.open(t)
	all, err := p.Arrays("sdt_instances_set")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	expect.OK(t, running.Process.Kill())
	// Wait without reaping: then it is a zombie, and its number is not reused.
	for range 1000 {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", running.Process.Pid))
		if err != nil || bytes.Contains(status, []byte(") Z ")) {
			break
		}
		time.Sleep(time.Millisecond)
	}
	pid := running.Process.Pid
	want := fmt.Sprintf("process %d: the process has ended, or runs another program now", pid)
	expect.Equal(t, want, expect.Failure(p.Word(all[0].Start)))
	expect.Equal(t, want, expect.Failure(image.OpenProcess(pid)))
	running.Wait()
	want = fmt.Sprintf("process %d: no such process", pid)
	expect.Equal(t, want, expect.Failure(image.OpenProcess(pid)))
	expect.OK(t, p.Close())
}

// TestProcessExec looks at a process that becomes another program.
func TestProcessExec(t *testing.T) {
	tools.Need(t, "sh")
	running := start(t, "sh", "-c", "echo ready; read line; exec cat")
	p := running.open(t)
	addr := image.Addr{Offset: p.Modules[0].Start}
	expect.Value(p.Bytes(addr, 4))(t)
	expect.Value(running.Stdin.Write([]byte("\n")))(t)
	var err error
	for range 1000 {
		if _, err = p.Bytes(addr, 4); err != nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	want := fmt.Sprintf("process %d: the process has ended, or runs another program now", running.Process.Pid)
	expect.Equal(t, want, fmt.Sprint(err))
}

// TestProcessRoot is about a process with another root, which names its files
// as it sees them.
func TestProcessRoot(t *testing.T) {
	tools.Need(t, "gcc")
	if os.Getuid() != 0 {
		t.Skip("only root can change the root")
	}
	program := host(t, "-static", "-DWORDS", source(t, "words.c"))
	for name, attr := range map[string]*syscall.SysProcAttr{
		"root":      {Chroot: filepath.Dir(program)},
		"namespace": {Chroot: filepath.Dir(program), Cloneflags: syscall.CLONE_NEWNS},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/host")
			cmd.SysProcAttr = attr
			running := untilReady(t, tools.StartCommand(t, cmd))
			p := running.open(t)
			checkProcess(t, p, running.out, 1)
			if m := p.Module(header0(t, running.out)); m.Path != program || m.Source != image.FromPath || m.Note != "" {
				t.Errorf("%+v", m)
			}
		})
	}
}

// TestProcessPermission looks at a process of another user.
func TestProcessPermission(t *testing.T) {
	const asNobody = "IMAGE_TEST_PID"
	if pid := os.Getenv(asNobody); pid != "" {
		var n int
		fmt.Sscan(pid, &n)
		_, err := image.OpenProcess(n)
		fmt.Println(err)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestProcessPermission$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", asNobody, os.Getpid()))
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else {
		cmd.Env[len(cmd.Env)-1] = asNobody + "=1"
	}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	const want = ": no permission to read it: that needs the same user or CAP_SYS_PTRACE\n"
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNoProcess(t *testing.T) {
	for _, pid := range []int{0, -1, 1 << 30} {
		want := fmt.Sprintf("process %d: no such process", pid)
		expect.Equal(t, want, expect.Failure(image.OpenProcess(pid)))
	}
}
