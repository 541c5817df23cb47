//go:build unix

package cc

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// A signal after the compiler has run, and before its objects are converted, leaves none of
// those that it has written: make would take them for done.
func TestSignalBeforeConversion(t *testing.T) {
	directory := t.TempDir()
	write := func(name string) string {
		path := filepath.Join(directory, name)
		disk.Write(t, path, "object")
		return path
	}
	old := write("old.o")
	expect.OK(t, os.Chtimes(old, time.Unix(1, 0), time.Unix(1, 0)))
	objects := newObjects([]string{filepath.Join(directory, "new.o"), old, filepath.Join(directory, "done.o"), filepath.Join(directory, "none.o")})
	write("new.o")
	write("done.o")
	sent, exited := make(chan chan<- os.Signal, 1), make(chan int, 1)
	s := newSession(&process.Process{
		Notify: func(c chan<- os.Signal, _ ...os.Signal) { sent <- c },
		Exit:   func(status int) { exited <- status; runtime.Goexit() },
	})
	s.Watch()
	s.setPending(objects)
	s.leave(objects[2])
	to := <-sent
	to <- syscall.SIGTERM
	expect.Equal(t, 128+15, <-exited, "exit status")
	for name, want := range map[string]bool{"new.o": false, "old.o": true, "done.o": true} {
		if _, err := os.Stat(filepath.Join(directory, name)); (err == nil) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An object is written if anything about it is new. One of a moment ago is not, however
// soon it is written again.
func TestIsWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.o")
	write := func(text string, changed time.Time) {
		disk.Write(t, path, text)
		expect.OK(t, os.Chtimes(path, changed, changed))
	}
	check := func(o *object, want bool, what string) {
		expect.Equal(t, want, o.isWritten(), "%s", what)
	}
	one := func() *object { return newObjects([]string{path})[0] }
	old, now := time.Unix(1_000_000_000, 0), time.Now()
	o := one()
	check(o, false, "no file")
	write("object", old)
	check(o, true, "a new file")
	o = one()
	check(o, false, "an old file")
	write("object", now)
	check(o, true, "a new time")
	for range 5 {
		disk.Write(t, path, "object")
		o = one()
		check(o, false, "a file of this moment")
		disk.Write(t, path, "object")
		check(o, true, "a file of this moment that is written again")
	}
	write("object", old)
	o = one()
	write("objects", old)
	check(o, true, "a new size")
	expect.OK(t, os.Remove(path))
	check(o, false, "a file that is gone")
	expect.OK(t, os.Mkdir(path, 0o777))
	check(o, false, "a directory")
}

// The kernel gives files the time of its last tick, of which there are at least 100 a second.
// After newObjects the next tick has come, so what is written then has another time.
func TestNewObjectsOutlastTheClockTick(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.o")
	for range 5 {
		disk.Write(t, path, "object")
		now := time.Now()
		expect.OK(t, os.Chtimes(path, now, now))
		newObjects([]string{path})
		if age := time.Since(now); age < 10*time.Millisecond {
			t.Errorf("after %v another file may have the same time", age)
		}
	}
}

// A refusal does not remove an object that another process has written since.
func TestRemovalOfAnothersObject(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.o")
	write := func(text string) {
		disk.Write(t, path, text)
	}
	for _, another := range []bool{true, false} {
		write("object")
		s, o := newSession(&process.Process{}), &object{path: path}
		s.look(o)
		if another {
			write("another")
		}
		var r convert.Result
		r.AddError(fs.ErrInvalid)
		s.finish(o, &r)
		if _, err := os.Stat(path); (err == nil) != another {
			t.Errorf("another has written it: %v: %v", another, err)
		}
	}
}
