//go:build unix

package ld

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/patch"
)

// signals are those that a test sends to a run in its own process.
type signals struct {
	to     chan chan<- os.Signal // once the run watches for them
	exited chan int              // its status, where a signal has ended it
}

// process is one that gets them.
func (s *signals) process(temp string, out *bytes.Buffer) *process.Process {
	s.exited, s.to = make(chan int, 1), make(chan chan<- os.Signal, 1)
	return &process.Process{
		Stdout: out, Stderr: out,
		Environ: (&process.Process{Environ: os.Environ()}).EnvironWith("TMPDIR", temp),
		Notify:  func(c chan<- os.Signal, _ ...os.Signal) { s.to <- c },
		Exit:    func(status int) { s.exited <- status; runtime.Goexit() },
	}
}

// Before the linker runs, a signal ends everything at once, and work that goes on waits
// for that.
func TestSignalWithoutLinker(t *testing.T) {
	temp := t.TempDir()
	sent := &signals{}
	s := newSession(sent.process(temp, nil))
	file := expect.Value(s.write("file", []byte("text")))(t)
	expect.Value(s.makePlaces([]string{"a/b.o"}))(t)
	to := <-sent.to
	to <- syscall.SIGPIPE // an error of a write, and nothing else
	to <- syscall.SIGTERM
	expect.Equal(t, 128+15, <-sent.exited, "exit status")
	disk.Absent(t, file)
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	again := make(chan error)
	go func() {
		_, err := s.mkdir("again")
		again <- err
	}()
	select {
	case err := <-again:
		t.Errorf("a directory was made, or not: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
}

func options(linker string) Options {
	return Options{
		Linker:  linker,
		Convert: convert.Options{Patch: patch.Options{Names: patch.DefaultNames(), ProbePrefix: "sdt_"}, Jobs: 2},
	}
}

// A directory that is not writable is one clear line.
func TestNoTemporaryDirectory(t *testing.T) {
	s := newSession((&signals{}).process(filepath.Join(t.TempDir(), "none"), nil))
	_, err := s.mkdir("lto")
	if err == nil || !strings.HasPrefix(err.Error(), "the directory for copies: ") || !strings.HasSuffix(err.Error(), "name another in TMPDIR") {
		t.Error(err)
	}
	expect.OK(t, s.remove())
}
