//go:build unix

package ld

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

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// slow is a linker that says that it has started, and waits.
const slow = `#!/bin/sh
echo "reading $1"
echo $$ >started
exec sleep 60
`

func program(t *testing.T, name, text string) string {
	t.Helper()
	expect.OK(t, os.WriteFile(name, []byte(text), 0o777))
	return expect.Value(filepath.Abs(name))(t)
}

func waitFor(t *testing.T, file string) {
	t.Helper()
	expect.Soon(t, func() bool {
		info, err := os.Stat(file)
		return err == nil && info.Size() > 0
	}, "%s exists", file)
}

// signalLinker links main.o, and sends the wrapper a signal while a slow linker runs.
func signalLinker(t *testing.T, linker string, sig syscall.Signal) {
	t.Helper()
	cmd, out := exec.Command(converter, "ld", "--linker", program(t, linker, slow), "--", "main.o"), &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	expect.OK(t, cmd.Start())
	waitFor(t, "started")
	expect.OK(t, cmd.Process.Signal(sig))
	tools.Died(t, cmd.Wait(), sig)
	expect.Equal(t, "reading main.o\n", out.String(), "says")
}

// A signal ends the linker and, in the same way, the wrapper, and nothing stays.
func TestSignals(t *testing.T) {
	tools.Need(t, "gcc")
	tools.Heed(t, syscall.SIGHUP, syscall.SIGINT)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1} {
		t.Run(sig.String(), func(t *testing.T) {
			enter(t, "none")
			compile(t, "main.c")
			signalLinker(t, "slow", sig)
		})
	}
}

// A signal while inputs are converted ends the wrapper as silently, before there is a linker.
func TestSignalsEarly(t *testing.T) {
	tools.Need(t, "gcc")
	tools.Heed(t, syscall.SIGHUP, syscall.SIGINT)
	enter(t, "none")
	compile(t, "sub/second.c")
	object := read(t, "sub/second.o")
	args := []string{"ld", "--linker", program(t, "slow", slow), "--", "-r"}
	for i := range 400 {
		name := fmt.Sprintf("sub/%d.o", i)
		disk.Write(t, name, object)
		args = append(args, name)
	}
	for i, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGKILL} {
		for n := range 4 {
			cmd := exec.Command(converter, args...)
			var out bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &out
			expect.OK(t, cmd.Start())
			time.Sleep(time.Duration(4*i+3*n) * time.Millisecond)
			cmd.Process.Signal(sig)
			tools.Died(t, cmd.Wait(), sig)
			if out.Len() > 0 && !strings.HasPrefix(out.String(), "reading ") {
				t.Errorf("says %q", out.String())
			}
			if entries, _ := os.ReadDir(os.Getenv("TMPDIR")); len(entries) > 0 {
				t.Fatalf("left behind: %v", entries)
			}
		}
	}
}

// So does one while the linker runs for the code of link-time optimisation.
func TestSignalInFirstLink(t *testing.T) {
	tools.Need(t, toolchains.LLVM("clang"))
	enter(t, "none")
	tools.Must(t, toolchains.LLVM("clang"), "-O2", "-flto", "-c", "main.c")
	signalLinker(t, "slow-lld", syscall.SIGTERM)
}

// A reader that has seen enough ends the linker, as it would without a wrapper.
func TestClosedOutput(t *testing.T) {
	tools.Need(t, "gcc", "timeout")
	enter(t, "none")
	compile(t, "main.c")
	yes := program(t, "talks", "#!/bin/sh\nexec yes \"$1\"\n")
	out := tools.Must(t, "sh", "-c", "timeout 20 '"+converter+"' ld --linker '"+yes+"' -- main.o | head -n 3; ")
	expect.Equal(t, "main.o\nmain.o\nmain.o\n", out)
}

// What a linker leaves running does not delay the end.
func TestDaemon(t *testing.T) {
	tools.Need(t, "gcc")
	enter(t, "none")
	compile(t, "main.c")
	leaves := program(t, "leaves", "#!/bin/sh\nsleep 30 &\necho $! >child\necho done with $1\n")
	start := time.Now()
	cmd := exec.Command(converter, "ld", "--linker", leaves, "--", "main.o")
	stdout := expect.Value(os.Create("stdout"))(t) // a pipe would end with the child
	defer stdout.Close()
	cmd.Stdout = stdout
	err := cmd.Run()
	out := disk.Read(t, "stdout")
	if child, err := os.ReadFile("child"); err == nil {
		defer exec.Command("kill", strings.TrimSpace(string(child))).Run()
	}
	if err != nil || string(out) != "done with main.o\n" || time.Since(start) > 20*time.Second {
		t.Errorf("%q, %v after %v", out, err, time.Since(start))
	}
}
