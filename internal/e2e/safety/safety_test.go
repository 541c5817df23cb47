//go:build linux

package safety

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
)

// program is the path of the program under test.
var program string

func TestMain(m *testing.M) {
	// What TMPDIR names may be in memory; these tests are about disks as well.
	os.Setenv("TMPDIR", "/var/tmp")
	tools.Short(`TestKillLeavesTheOldOrTheNewFile|TestFaultLeavesTheFileAsItWas`)
	os.Exit(func() int {
		directory, err := os.MkdirTemp("", "safetytest")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(directory)
		os.Chmod(directory, 0o755) // for tests that run it as another user
		if program, err = tools.Build(directory); err != nil {
			panic(err)
		}
		return m.Run()
	}())
}

const object = "comdat.amd64-gcc12-O2.o"

// outcome is how a run of the program ended.
type outcome struct {
	status int // -1 when a signal ended it
	signal syscall.Signal
	stdout string
	stderr string
}

func run(t *testing.T, args ...string) outcome {
	t.Helper()
	tools.DependOnTree(t)
	return runCommand(t, exec.Command(program, args...))
}

func runCommand(t *testing.T, cmd *exec.Cmd) outcome {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return outcomeOf(cmd, stdout.String(), stderr.String())
}

func outcomeOf(cmd *exec.Cmd, stdout, stderr string) outcome {
	o := outcome{status: cmd.ProcessState.ExitCode(), stdout: stdout, stderr: stderr}
	if ws := cmd.ProcessState.Sys().(syscall.WaitStatus); ws.Signaled() {
		o.signal = ws.Signal()
	}
	return o
}

// ok demands a run without any message.
func (o outcome) ok(t *testing.T) {
	t.Helper()
	if o != (outcome{}) {
		t.Fatalf("got %+v, want status 0 and no output", o)
	}
}

// failed demands status 1 and one line that ends in want.
func (o outcome) failed(t *testing.T, want string) {
	t.Helper()
	if o.status != 1 || o.stdout != "" || strings.Count(o.stderr, "\n") != 1 ||
		!strings.HasPrefix(o.stderr, "sdtconvert: ") || !strings.HasSuffix(o.stderr, want+"\n") {
		t.Fatalf("got %+v, want status 1 and a line that ends in %q", o, want)
	}
}

// sample is an object and what becomes of it.
type sample struct {
	old, new []byte
	flags    []string // of the conversion
}

func newSample(t *testing.T, old []byte, flags ...string) sample {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sample.o")
	disk.Write(t, path, old)
	run(t, append(flags, path)...).ok(t)
	s := sample{old, disk.Read(t, path), flags}
	if bytes.Equal(s.old, s.new) {
		t.Fatal("the sample does not change")
	}
	return s
}

func smallSample(t *testing.T) sample { return newSample(t, objects.Read(t, object)) }

// largeSample is too large to be read at once, and has a section that is long
// enough to be copied by the kernel.
func largeSample(t *testing.T) sample {
	t.Helper()
	data := objects.Read(t, object)
	e := expect.Value(expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), object))(t).Edit())(t)
	e.AddSection(elfreloc.NewSection{Name: ".debug_large", Type: 1, Align: 1, Data: bytes.Repeat([]byte("0123456789abcdef"), 512<<10)})
	return newSample(t, expect.Value(objects.Assemble(expect.Value(e.Output())(t), data))(t))
}

// withLongSection returns a committed object with more data than is read at once.
func withLongSection(t *testing.T, name string) []byte {
	t.Helper()
	tools.Need(t, "objcopy")
	directory := t.TempDir()
	in, data, out := filepath.Join(directory, "in.o"), filepath.Join(directory, "data"), filepath.Join(directory, "out.o")
	disk.Write(t, in, objects.Read(t, name))
	disk.Write(t, data, bytes.Repeat([]byte("0123456789abcdef"), 512<<10))
	tools.Must(t, "objcopy", "--add-section", ".debug_long="+data, in, out)
	return disk.Read(t, out)
}

// place writes the old object to a file in a directory of its own.
func (s sample) place(t *testing.T, directory string) string {
	t.Helper()
	path := filepath.Join(directory, "a.o")
	disk.Write(t, path, s.old)
	return path
}

func wantBytes(t *testing.T, path string, want []byte) {
	t.Helper()
	if got := disk.Read(t, path); !bytes.Equal(got, want) {
		t.Fatalf("%s has %d bytes, and they are not the %d that are wanted", path, len(got), len(want))
	}
}

// wantOnly demands that a directory holds the named files and no other.
func wantOnly(t *testing.T, directory string, names ...string) {
	t.Helper()
	entries := expect.Value(os.ReadDir(directory))(t)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if strings.Join(got, " ") != strings.Join(names, " ") {
		t.Fatalf("%s holds %q, want %q", directory, got, names)
	}
}

// identity tells a file that was replaced or written to from one that was not.
type identity struct {
	inode uint64
	mtime time.Time
	mode  os.FileMode
}

func identify(t *testing.T, path string) identity {
	t.Helper()
	info := expect.Value(os.Lstat(path))(t)
	return identity{info.Sys().(*syscall.Stat_t).Ino, info.ModTime(), info.Mode()}
}

// identified returns what fails a test if a file is another by then.
func identified(t *testing.T, path string) (unchanged func()) {
	t.Helper()
	was := identify(t, path)
	return func() {
		t.Helper()
		if now := identify(t, path); now != was {
			t.Errorf("%s was %+v and is %+v", path, was, now)
		}
	}
}

// directories are places on file systems of different kinds.
func directories(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{"disk": t.TempDir()}
	if memory, err := os.MkdirTemp("/dev/shm", "safetytest"); err == nil {
		t.Cleanup(func() { os.RemoveAll(memory) })
		found["memory"] = memory
	}
	return found
}

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
		for round := range 8 {
			s, n := small, 200
			if round%2 == 1 {
				s, n = large, 8
			}
			signalRun(t, s, n, sig)
		}
	}
}

// signalRun sends a signal to a run on n files. The run prints a line for each site into a pipe of which only the first
// is read, so that it cannot end before.
func signalRun(t *testing.T, s sample, n int, sig syscall.Signal) {
	t.Helper()
	directory := t.TempDir()
	paths := fill(t, directory, s, n)
	cmd := exec.Command(program, append([]string{"-v", "-j", "4"}, paths...)...)
	lines, out, err := os.Pipe()
	expect.OK(t, err)
	defer lines.Close()
	const page = 4096 // the smallest size of a pipe
	_, err = unix.FcntlInt(out.Fd(), unix.F_SETPIPE_SZ, page)
	expect.OK(t, err)
	var stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = out, &stderr
	expect.OK(t, cmd.Start())
	out.Close()
	_, err = io.ReadFull(lines, make([]byte, 1))
	expect.OK(t, err)
	time.Sleep(time.Duration(rand.Intn(20)) * time.Millisecond) // wherever the run is then
	expect.OK(t, cmd.Process.Signal(sig))
	cmd.Wait()
	o := outcomeOf(cmd, "", stderr.String())
	if o.status != 128+int(sig) || o.stderr != "" {
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
}
