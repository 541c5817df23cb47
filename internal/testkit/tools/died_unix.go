//go:build unix

package tools

import (
	"errors"
	"os/exec"
	"syscall"
	"testing"
)

// Died checks that err is of a program that a signal has ended.
func Died(t testing.TB, err error, sig syscall.Signal) {
	t.Helper()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) {
		t.Fatalf("%v, want death by %v", err, sig)
	}
	if ws := exit.Sys().(syscall.WaitStatus); !ws.Signaled() || ws.Signal() != sig {
		t.Errorf("%v, want death by %v", err, sig)
	}
}
