//go:build unix

package preprocess

import (
	"os"
	"os/exec"
	"syscall"
)

// group makes a process group of a command: a compiler's driver runs other programs.
func group(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills a command that group was called for, and all that it runs.
func killGroup(p *os.Process) { syscall.Kill(-p.Pid, syscall.SIGKILL) }
