package tools

import (
	"bufio"
	"io"
	"os/exec"
	"testing"
)

// Start runs a program that goes on until its standard input ends, as it does with
// the test at the latest, and returns what is written to it and the lines it prints.
func Start(t testing.TB, program string) (*exec.Cmd, io.WriteCloser, *bufio.Scanner) {
	t.Helper()
	cmd := exec.Command(program)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close()
		cmd.Wait()
	})
	return cmd, stdin, bufio.NewScanner(stdout)
}
