//go:build linux

package safety

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

func TestTwoRunsAtOnce(t *testing.T) {
	for _, s := range []sample{smallSample(t), largeSample(t)} {
		directory := t.TempDir()
		for range 50 {
			path := s.place(t, directory)
			var outcomes [2]outcome
			var wg sync.WaitGroup
			for i := range outcomes {
				wg.Go(func() { outcomes[i] = run(t, path) })
			}
			wg.Wait()
			for _, o := range outcomes {
				o.ok(t)
			}
			wantBytes(t, path, s.new)
			wantOnly(t, directory, "a.o")
		}
	}
}

// hammer runs the program for a while, with meddle beside it in a loop. It
// returns how many runs ended well and how many with an error.
func hammer(t *testing.T, path string, meddle func()) (well, failed int) {
	t.Helper()
	stop := make(chan bool)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				meddle()
			}
		}
	})
	for end := time.Now().Add(time.Second); time.Now().Before(end); {
		o := run(t, "convert", path) // the file may be missing, and is not a command then
		switch {
		case o.status == 0:
			well++
		case o.status == 1 && strings.HasPrefix(o.stderr, "sdtconvert: ") && !strings.Contains(o.stderr, "goroutine "):
			failed++
		default:
			t.Errorf("got %+v, want status 0, or 1 and a message", o)
		}
	}
	close(stop)
	wg.Wait()
	t.Logf("%d runs ended well, %d with an error", well, failed)
	return well, failed
}

func TestFileReplacedUnderWay(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	path := s.place(t, directory)
	fresh := filepath.Join(t.TempDir(), "fresh.o") // on the same file system
	well, _ := hammer(t, path, func() {
		if err := os.WriteFile(fresh, s.old, 0o644); err != nil {
			t.Error(err)
		}
		if err := os.Rename(fresh, path); err != nil {
			t.Error(err)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, s.old) && !bytes.Equal(got, s.new) {
			t.Errorf("%d bytes, neither the old ones nor the new, and error %v", len(got), err)
		}
		time.Sleep(time.Duration(rand.Intn(2000)) * time.Microsecond)
	})
	if well == 0 {
		t.Error("no run ended well")
	}
	wantOnly(t, directory, "a.o")
}

func TestFileRemovedUnderWay(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	path := s.place(t, directory)
	hammer(t, path, func() {
		os.Remove(path)
		os.WriteFile(path, s.old, 0o644)
		time.Sleep(time.Duration(rand.Intn(2000)) * time.Microsecond)
	})
	disk.Write(t, path, s.old)
	run(t, path).ok(t)
	wantOnly(t, directory, "a.o")
}

func TestFileWrittenUnderWay(t *testing.T) {
	for _, s := range []sample{smallSample(t), largeSample(t)} {
		directory := t.TempDir()
		path := s.place(t, directory)
		hammer(t, path, func() {
			f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o644)
			if err != nil {
				return
			}
			defer f.Close()
			f.Truncate(rand.Int63n(int64(len(s.old))))
			time.Sleep(time.Duration(rand.Intn(1000)) * time.Microsecond)
			noise := make([]byte, 512)
			f.WriteAt(noise, rand.Int63n(int64(len(s.old))))
			f.WriteAt(s.old, 0)
			f.Truncate(int64(len(s.old)))
			time.Sleep(time.Duration(rand.Intn(3000)) * time.Microsecond)
		})
		wantOnly(t, directory, "a.o")
	}
}

// fill makes many copies of an object, and returns their paths.
func fill(t *testing.T, directory string, s sample, n int) []string {
	t.Helper()
	paths := make([]string, n)
	for i := range paths {
		paths[i] = filepath.Join(directory, fmt.Sprintf("%04d.o", i))
		disk.Write(t, paths[i], s.old)
	}
	return paths
}

func TestFewFileDescriptors(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	paths := fill(t, directory, s, 2000)
	args := append([]string{"-c", `ulimit -n 64; exec "$@"`, "sh", program, "-j", "8"}, paths...)
	runCommand(t, exec.Command("sh", args...)).ok(t)
	for _, path := range paths {
		wantBytes(t, path, s.new)
	}
}

func TestSignalLeavesNoTemporaryFile(t *testing.T) {
	tools.Heed(t, syscall.SIGINT, syscall.SIGHUP)
	small, large := smallSample(t), largeSample(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		ended := 0
		for round := range 8 {
			s, n := small, 200
			if round%2 == 1 {
				s, n = large, 8
			}
			if signalRun(t, s, n, sig, time.Duration(1+rand.Intn(40))*time.Millisecond) {
				ended++
			}
		}
		if ended == 0 {
			t.Errorf("%v never ended a run", sig)
		}
	}
}

// signalRun sends a signal to a run on n files, and reports whether it was
// that which ended the run.
func signalRun(t *testing.T, s sample, n int, sig syscall.Signal, after time.Duration) bool {
	t.Helper()
	directory := t.TempDir()
	paths := fill(t, directory, s, n)
	cmd := exec.Command(program, append([]string{"-j", "4"}, paths...)...)
	o := interrupt(t, cmd, sig, after)
	early := o.signal == sig // before the program was ready for it
	caught := o.status == 128+int(sig) && o.stderr == ""
	if o.status != 0 && !early && !caught {
		t.Errorf("%v: got %+v, want status %d", sig, o, 128+int(sig))
	}
	names := make([]string, n)
	for i, path := range paths {
		names[i] = filepath.Base(path)
		if got := disk.Read(t, path); !bytes.Equal(got, s.old) && !bytes.Equal(got, s.new) {
			t.Errorf("%v: %s has %d bytes, neither the old ones nor the new", sig, path, len(got))
		}
	}
	wantOnly(t, directory, names...)
	return caught
}

// interrupt starts a command, and sends it a signal after a while.
func interrupt(t *testing.T, cmd *exec.Cmd, sig syscall.Signal, after time.Duration) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	expect.OK(t, cmd.Start())
	time.Sleep(after)
	cmd.Process.Signal(sig) // an error when it has ended already
	cmd.Wait()
	return outcomeOf(cmd, stdout.String(), stderr.String())
}
