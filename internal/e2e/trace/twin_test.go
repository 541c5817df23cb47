package trace

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// A program that attacks its tracer changes no file, takes no memory of the tracer's beyond a bound, and reaches no other process. The tracer
// ends with a status and lines that a terminal shows as text.
func TestHostileTwin(t *testing.T) {
	needPtrace(t)
	program := compile(t, gcc(), "testdata/twin.c")
	directory := filepath.Dir(program)
	victim := filepath.Join(t.TempDir(), "victim")
	content := []byte("a file of somebody else, 33 bytes")
	expect.OK(t, os.WriteFile(victim, content, 0o644))
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		attributes.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		openTo(t, directory, victim)
	}
	bystander := exec.Command("sleep", "1000")
	expect.OK(t, bystander.Start())
	defer bystander.Process.Kill()
	modes := [][]string{{}, {"-c"}, {"-f"}, {"--breakpoints"}, {"-f", "-c"}, {"--hist", "arg0"}, {"--between", "hit,hit"}, {"--filter", `arg0 > 5 && arg1 != "x"`}}
	for run := range tools.Cases(t, 6) {
		args := append(append([]string{"trace"}, modes[run%len(modes)]...), "--for", []string{"100ms", "400ms", "2s"}[run%3])
		twin := exec.Command(program, victim, strconv.Itoa(run))
		twin.SysProcAttr = attributes
		out := expect.Value(twin.StdoutPipe())(t)
		expect.OK(t, twin.Start())
		out.Read(make([]byte, 6))
		for range 3 {
			tracer := exec.Command(converter, append(args, "-p", strconv.Itoa(twin.Process.Pid))...)
			var shown, messages bytes.Buffer
			tracer.Stdout, tracer.Stderr = &shown, &messages
			expect.OK(t, tracer.Start())
			alarm := time.AfterFunc(60*time.Second, func() { tracer.Process.Signal(syscall.SIGQUIT) })
			tracer.Wait()
			what := fmt.Sprintf("run %d, %s", run, args)
			if !alarm.Stop() {
				t.Fatalf("%s: hangs: %s", what, messages.String())
			}
			if code := tracer.ProcessState.ExitCode(); code != 0 && code != 1 {
				t.Fatalf("%s: %v: %s", what, tracer.ProcessState, messages.String())
			}
			if code := tracer.ProcessState.ExitCode(); code == 1 && messages.Len() == 0 {
				t.Errorf("%s: status 1 without a word", what)
			}
			if kilobytes := tracer.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; kilobytes > 400<<10 {
				t.Errorf("%s: the tracer took %d MiB", what, kilobytes>>10)
			}
			for _, b := range append(shown.Bytes(), messages.Bytes()...) {
				if b != '\n' && (b < ' ' || b > '~') {
					t.Fatalf("%s: byte %#x in the output", what, b)
				}
			}
			if strings.Contains(messages.String(), "goroutine ") {
				t.Fatalf("%s: %s", what, messages.String())
			}
		}
		syscall.Kill(-twin.Process.Pid, syscall.SIGKILL)
		twin.Wait()
		expect.Equal(t, content, expect.Value(os.ReadFile(victim))(t), "run %d: the file of somebody else", run)
	}
	expect.OK(t, bystander.Process.Signal(syscall.Signal(0)))
	expect.Contains(t, string(expect.Value(os.ReadFile(fmt.Sprintf("/proc/%d/status", bystander.Process.Pid)))(t)), "State:\tS")
}

// openTo lets other users reach files.
func openTo(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		for ; path != filepath.Dir(path) && strings.HasPrefix(path, os.TempDir()); path = filepath.Dir(path) {
			info := expect.Value(os.Stat(path))(t)
			if info.IsDir() {
				expect.OK(t, os.Chmod(path, info.Mode()|0o055))
			}
		}
	}
}
