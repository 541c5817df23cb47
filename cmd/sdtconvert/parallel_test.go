package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"sdtconvert/internal/input"
	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// aRun is a run of the program, with all that it has of a process.
type aRun struct {
	args  []string
	stdin string
	env   []string
}

// outcome is all that comes of a run.
type outcome struct {
	Status         int
	Stdout, Stderr string
	Files          map[string]string
}

// in runs the program on files of a directory of its own, which is F in all texts.
func (r *aRun) in(t *testing.T, directory string) outcome {
	here := func(text string) string { return strings.ReplaceAll(text, "F/", directory+"/") }
	args := make([]string, len(r.args))
	for i := range args {
		args[i] = here(r.args[i])
	}
	env := make([]string, len(r.env))
	for i := range env {
		env[i] = here(r.env[i])
	}
	for _, name := range []string{"calls.amd64-gcc12-O2.o", "bad.riscv64-gcc12-jal.o", "plain.txt"} {
		data := []byte("text\n")
		if strings.HasSuffix(name, ".o") {
			data = objects.Read(t, name)
		}
		if err := os.WriteFile(filepath.Join(directory, name), data, 0o666); err != nil {
			t.Error(err)
		}
	}
	var out, errs bytes.Buffer
	p := newProgram(&process.Process{Stdin: strings.NewReader(r.stdin), Stdout: &out, Stderr: &errs, Environ: env})
	o := outcome{Status: p.run("sdtconvert", args), Files: map[string]string{}}
	there := strings.NewReplacer(directory, "F", strings.TrimPrefix(directory, "/"), "F") // absolute, or from the root
	o.Stdout, o.Stderr = there.Replace(out.String()), there.Replace(errs.String())
	names, err := filepath.Glob(filepath.Join(directory, "*"))
	if err != nil {
		t.Error(err)
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		o.Files[filepath.Base(name)] = string(data)
	}
	return o
}

// Runs of the program in one process do not see of each other, whatever their
// commands are.
func TestRunsAtTheSameTime(t *testing.T) {
	const good, bad = "F/calls.amd64-gcc12-O2.o", "F/bad.riscv64-gcc12-jal.o"
	runs := []aRun{
		{args: []string{"--json", "--stapsdt", good}},
		{args: []string{"-v", "-j", "3", "-o", "F/out.o", good}},
		{args: []string{good, bad, "F/plain.txt"}},
		{args: []string{"inspect", good, bad}},
		{args: []string{"inspect", "--json", "--prefix", "other_", good}},
		{args: []string{"sites", "--asm", good}},
		{args: []string{"stubs", "-o", "F/stubs.o", good}},
		{args: []string{"list", "-v", good}},
		{args: []string{"check", "--format=github", good, bad}, env: []string{"GITHUB_WORKSPACE=F/"}},
		{args: []string{"check", "--format=github", good, bad}, env: []string{"GITHUB_WORKSPACE=/"}},
		{args: []string{"resolve", good}, stdin: ".text+0x4\n.text+0x20 and more\n"},
		{args: []string{"resolve", "--json", good}, stdin: "#1 .text+0x10\nnonsense\n"},
		{args: []string{"version"}},
		{args: []string{"help", "list"}},
		{args: []string{"--layout=none", good}},
	}
	alone := make([]outcome, len(runs))
	for i := range runs {
		alone[i] = runs[i].in(t, t.TempDir())
	}
	for _, pair := range [][2]int{{8, 9}, {10, 11}, {3, 4}} {
		if alone[pair[0]].Stdout == alone[pair[1]].Stdout {
			t.Errorf("%q and %q say the same", runs[pair[0]].args, runs[pair[1]].args)
		}
	}
	const times = 4
	together := make([]outcome, times*len(runs))
	var wg sync.WaitGroup
	for i := range together {
		directory := t.TempDir()
		wg.Go(func() { together[i] = runs[i%len(runs)].in(t, directory) })
	}
	wg.Wait()
	statuses := map[int]bool{}
	for i := range together {
		statuses[together[i].Status] = true
		expect.Equal(t, alone[i%len(runs)], together[i], "%q", runs[i%len(runs)].args)
	}
	expect.Equal(t, fmt.Sprint(map[int]bool{exitOK: true, exitFailed: true, exitUsage: true}), fmt.Sprint(statuses), "exit statuses")
}

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
	if _, err := (endingWriter{r.Stdout, r.program}).Write([]byte("line\n")); err == nil {
		t.Error("the write says nothing")
	}
	expect.Equal(t, 128+int(syscall.SIGPIPE), r.status, "exit status")
	expect.Equal(t, 0, r.left(t), "files left")
}

// Where the signal is ignored, a broken pipe is an error like others.
func TestIgnoredBrokenPipe(t *testing.T) {
	r := begin(t, brokenPipe{}, syscall.SIGPIPE)
	if _, err := (endingWriter{r.Stdout, r.program}).Write([]byte("line\n")); err == nil {
		t.Error("the write says nothing")
	}
	if r.status != -1 || r.left(t) != 1 {
		t.Errorf("ended with status %d", r.status)
	}
	var out bytes.Buffer
	if _, err := (endingWriter{&out, r.program}).Write([]byte("line\n")); err != nil || out.String() != "line\n" {
		t.Errorf("wrote %q: %v", out.String(), err)
	}
}
