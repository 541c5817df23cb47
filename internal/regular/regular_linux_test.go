package regular

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

// What is no regular file is not opened, whatever takes the place of one.
func TestOtherTypes(t *testing.T) {
	directory := t.TempDir()
	pipe := filepath.Join(directory, "pipe")
	expect.OK(t, unix.Mkfifo(pipe, 0o666))
	for _, path := range []string{pipe, directory, "/dev/null", "/dev/tty"} {
		f, err := Open(path)
		if !IsType(err) {
			t.Errorf("%s: %v, %v", path, f, err)
		}
	}
	plain := filepath.Join(directory, "plain")
	disk.Write(t, plain, "bytes")
	stop := make(chan bool)
	defer close(stop)
	go func() {
		for {
			select {
			case <-stop:
				return
			default:
				unix.Renameat2(unix.AT_FDCWD, pipe, unix.AT_FDCWD, plain, unix.RENAME_EXCHANGE)
			}
		}
	}()
	opened, refused := 0, 0
	expect.Soon(t, func() bool {
		for range 1000 {
			if f, err := Open(plain); err == nil {
				opened++
				f.Close()
			} else {
				refused++
			}
		}
		return opened > 100 && refused > 100
	}, "both were met")
}

// Symbolic links do not lead out of a root, and those within it do.
func TestBelow(t *testing.T) {
	root := t.TempDir()
	expect.OK(t, os.MkdirAll(filepath.Join(root, "etc"), 0o777))
	disk.Write(t, filepath.Join(root, "etc/passwd"), "inner")
	expect.OK(t, os.Symlink("/etc/passwd", filepath.Join(root, "link")))
	expect.OK(t, os.Symlink("/proc/self/exe", filepath.Join(root, "magic")))
	for _, path := range []string{"/etc/passwd", "/link", "/../../etc/passwd"} {
		f := expect.Value(OpenBelow(root, path, path))(t)
		b := make([]byte, f.Info.Size())
		expect.Value(f.ReadAt(b, 0))(t)
		expect.Equal(t, "inner", string(b), "%s", path)
		f.Close()
	}
	if _, err := OpenBelow(root, "/magic", "magic"); !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

// A lease of the file's owner is not waited for.
func TestLeases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "leased")
	disk.Write(t, path, "bytes")
	f := expect.Value(os.OpenFile(path, os.O_RDWR, 0))(t)
	defer f.Close()
	expect.Value(unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK))(t)
	start := time.Now()
	_, err := Open(path)
	if !errors.Is(err, syscall.EAGAIN) || time.Since(start) > time.Second {
		t.Errorf("%v after %v", err, time.Since(start))
	}
	expect.Value(unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_UNLCK))(t)
}

// Holes are no bytes that a file holds. They are read as long as they are few, or the file holds as much besides.
func TestHoles(t *testing.T) {
	const size, data = 1 << 40, 3 << 20
	path := filepath.Join(t.TempDir(), "sparse")
	file := expect.Value(os.Create(path))(t)
	expect.Value(file.WriteAt(make([]byte, data), size/2))(t)
	expect.OK(t, file.Truncate(size))
	expect.OK(t, file.Close())
	f := expect.Value(Open(path))(t)
	defer f.Close()
	if held := f.Held(); held < data || held > data+1<<20 {
		t.Errorf("holds %d", held)
	}
	expect.OK(t, f.CheckRead(0, shortRead))
	expect.OK(t, f.CheckRead(size/2, data))
	expect.OK(t, f.CheckRead(size/2, data))
	expect.OK(t, f.CheckRead(0, smallHoles)) // of 16 MiB, and what the file holds besides
	expect.OK(t, f.CheckRead(0, 2<<20))
	for range 2 {
		if err := f.CheckRead(10, 2<<20); !IsLimit(err) {
			t.Error(err)
		}
	}
	expect.Error(t, f.CheckRead(0, size), "are a hole")

	whole := filepath.Join(t.TempDir(), "whole")
	disk.Write(t, whole, make([]byte, data))
	plain := expect.Value(Open(whole))(t)
	defer plain.Close()
	expect.Equal(t, data, plain.Held())
	plain.Most = data
	expect.OK(t, plain.CheckRead(0, data))
	expect.Error(t, plain.CheckRead(0, data+1), "not named on the command line")
}
