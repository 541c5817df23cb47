package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"sdtconvert/internal/input"
	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// interruptible is a run that has begun to write a file into a directory, and what it has
// of the process.
type interruptible struct {
	*program
	directory string
	watched   []os.Signal
	status    int
}

// brokenPipe is a standard stream without a reader.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) {
	return 0, &os.PathError{Op: "write", Path: "/dev/stdout", Err: syscall.EPIPE}
}

// begin begins to write a file, where some signals are ignored.
func begin(t *testing.T, stdout io.Writer, ignored ...os.Signal) *interruptible {
	t.Helper()
	r := &interruptible{directory: t.TempDir(), status: -1}
	r.program = newProgram(&process.Process{
		Stdout: stdout, Stderr: io.Discard,
		Notify:  func(_ chan<- os.Signal, signals ...os.Signal) { r.watched = append(r.watched, signals...) },
		Ignored: func(sig os.Signal) bool { return slices.Contains(ignored, sig) },
		Exit:    func(status int) { r.status = status },
	})
	path := filepath.Join(t.TempDir(), "in")
	disk.Write(t, path, "")
	in := expect.Value(input.Open(path))(t)
	t.Cleanup(func() { in.Close() })
	t.Cleanup(expect.Value(r.files.Stream(filepath.Join(r.directory, "out"), in, 0))(t).Discard)
	if r.left(t) != 1 {
		t.Fatal("no file was begun")
	}
	return r
}

// left is how many files there are in the directory.
func (r *interruptible) left(t *testing.T) int {
	return len(expect.Value(os.ReadDir(r.directory))(t))
}

// nohup has a program ignore what it is started to survive.
func TestIgnoredSignalsAreNotWatched(t *testing.T) {
	all := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE}
	if r := begin(t, io.Discard); !slices.Equal(r.watched, all) {
		t.Errorf("watches %v", r.watched)
	}
	r := begin(t, io.Discard, syscall.SIGHUP, syscall.SIGPIPE)
	expect.Equal(t, r.watched, all[:2], "watches")
}

// The reader of what is printed may go before all files are written.
func TestBrokenPipeLeavesNoTemporaryFile(t *testing.T) {
	r := begin(t, brokenPipe{})
	if _, err := (outlet{r.Stdout, r.program}).Write([]byte("line\n")); err == nil {
		t.Error("the write says nothing")
	}
	expect.Equal(t, 128+int(syscall.SIGPIPE), r.status, "exit status")
	expect.Equal(t, 0, r.left(t), "files left")
}

// Where the signal is ignored, a broken pipe is an error like others.
func TestIgnoredBrokenPipe(t *testing.T) {
	r := begin(t, brokenPipe{}, syscall.SIGPIPE)
	if _, err := (outlet{r.Stdout, r.program}).Write([]byte("line\n")); err == nil {
		t.Error("the write says nothing")
	}
	if r.status != -1 || r.left(t) != 1 {
		t.Errorf("ended with status %d", r.status)
	}
	var out bytes.Buffer
	if _, err := (outlet{&out, r.program}).Write([]byte("line\n")); err != nil || out.String() != "line\n" {
		t.Errorf("wrote %q: %v", out.String(), err)
	}
}
