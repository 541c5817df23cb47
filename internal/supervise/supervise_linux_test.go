package supervise_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/supervise"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// supervised runs a program, and has its opens answered.
func supervised(t *testing.T, answer func(*supervise.Open), cmd *exec.Cmd) string {
	t.Helper()
	s := expect.Value(supervise.New(supervise.Options{}))(t)
	defer s.Close()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	expect.OK(t, s.Start(cmd.Start, answer))
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %v\n%s", cmd.Args, err, &out)
	}
	return out.String()
}

// A program reads what the answer gives it, by whatever path it names the file, and so do
// the programs that it starts.
func TestGiven(t *testing.T) {
	directory := t.TempDir()
	disk.Write(t, filepath.Join(directory, "a"), []byte("old\n"))
	disk.Write(t, filepath.Join(directory, "b"), []byte("new\n"))
	id, ok := supervise.Identify(filepath.Join(directory, "a"))
	if !ok {
		t.Fatal("no identity")
	}
	cmd := exec.Command("/bin/sh", "-c", `cat a; cat "$PWD/a"; cat < a; cat ../*/a; cat /proc/self/cwd/a; exec 7</; cat b`)
	cmd.Dir = directory
	got := supervised(t, func(o *supervise.Open) {
		if other, ok := supervise.Identify(o.File); !ok || other != id {
			o.Continue()
			return
		}
		go func() {
			fd := expect.Value(unix.Open(filepath.Join(directory, "b"), unix.O_RDONLY, 0))(t)
			defer unix.Close(fd)
			o.Give(fd)
		}()
	}, cmd)
	expect.Equal(t, strings.Repeat("new\n", 6), got)
}

// Signals that interrupt an answer do not change it.
func TestSignalsDuringAnswers(t *testing.T) {
	const opens = 5_000
	directory := t.TempDir()
	disk.Write(t, filepath.Join(directory, "a"), []byte("old\n"))
	given := expect.Value(os.Create(filepath.Join(directory, "b")))(t)
	defer given.Close()
	id, ok := supervise.Identify(filepath.Join(directory, "a"))
	if !ok {
		t.Fatal("no identity")
	}
	expect.Value(given.WriteString("new\n"))(t)
	var ended atomic.Bool
	var signals sync.WaitGroup
	signals.Go(func() {
		for !ended.Load() {
			for _, task := range expect.Value(os.ReadDir("/proc/self/task"))(t) {
				tid := expect.Value(strconv.Atoi(task.Name()))(t)
				unix.Tgkill(os.Getpid(), tid, unix.SIGURG) // which Go uses itself, to stop a goroutine
			}
		}
	})
	cmd := exec.Command("cat", slices.Repeat([]string{"a"}, opens)...)
	cmd.Dir = directory
	got := supervised(t, func(o *supervise.Open) {
		if other, ok := supervise.Identify(o.File); !ok || other != id {
			o.Continue()
			return
		}
		fd := expect.Value(unix.Open(given.Name(), unix.O_RDONLY, 0))(t)
		defer unix.Close(fd)
		o.Give(fd)
	}, cmd)
	ended.Store(true)
	signals.Wait()
	if want := strings.Repeat("new\n", opens); got != want {
		t.Errorf("%d of %d opens got what was given", strings.Count(got, "new\n"), opens)
	}
}

func TestCostOfAnOpen(t *testing.T) {
	if testing.Short() {
		t.Skip()
	}
	var opens atomic.Int64
	begin := time.Now()
	cmd := exec.Command("/usr/bin/perl", "-e", `for (1..20000) { open(my $f, "<", "/etc/passwd"); close $f }`)
	supervised(t, func(o *supervise.Open) { opens.Add(1); supervise.Identify(o.File); o.Continue() }, cmd)
	t.Logf("%v for each of %d opens", time.Since(begin)/time.Duration(opens.Load()), opens.Load())
}

func TestNothingIsStarted(t *testing.T) {
	expect.Value(supervise.New(supervise.Options{}))(t).Close()
}

// The thread ends, and what it has left open is closed.
func TestNothingIsLeft(t *testing.T) {
	count := func() (int, int) {
		fds := expect.Value(os.ReadDir("/proc/self/fd"))(t)
		tasks := expect.Value(os.ReadDir("/proc/self/task"))(t)
		return len(fds), len(tasks)
	}
	supervised(t, (*supervise.Open).Continue, exec.Command("/bin/true"))
	fds, tasks := count()
	for range 50 {
		supervised(t, (*supervise.Open).Continue, exec.Command("/bin/true"))
	}
	if fdsNow, tasksNow := count(); fdsNow > fds || tasksNow > tasks+10 {
		t.Errorf("%d descriptors and %d threads, were %d and %d", fdsNow, tasksNow, fds, tasks)
	}
}
