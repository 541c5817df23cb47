//go:build linux

package safety

import (
	"bytes"
	"context"
	"debug/elf"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// Of a long file a copy is begun before its refusals are known.
func TestRefusedLongFileIsNotTouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.o")
	old := withLongSection(t, "address.amd64-gcc12-code.o")
	disk.Write(t, path, old)
	unchanged := identified(t, path)
	if o := run(t, path); o.status != 1 || !strings.Contains(o.stderr, "address") {
		t.Errorf("got %+v, want status 1 and a word on the address", o)
	}
	wantBytes(t, path, old)
	unchanged()
	wantOnly(t, filepath.Dir(path), "a.o")
}

func TestOwnerIsKept(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	s := smallSample(t)
	for _, owner := range []struct{ user, group uint32 }{{1234, 4321}, {0, 4321}, {1234, 0}, {0, 0}} {
		path := s.place(t, t.TempDir())
		expect.OK(t, os.Chown(path, int(owner.user), int(owner.group)))
		run(t, path).ok(t)
		info := expect.Value(os.Stat(path))(t)
		if st := info.Sys().(*syscall.Stat_t); st.Uid != owner.user || st.Gid != owner.group {
			t.Errorf("owner is %d:%d, want %+v", st.Uid, st.Gid, owner)
		}
	}
}

// A file that cannot be given to its owner must not run with the rights of
// another.
func TestSetuidIsDroppedWhereTheOwnerCannotBeKept(t *testing.T) {
	tools.Need(t, "strace")
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	s := smallSample(t)
	path := s.place(t, t.TempDir())
	expect.OK(t, os.Chown(path, 1234, 4321))
	expect.OK(t, os.Chmod(path, 0o755|os.ModeSetuid|os.ModeSetgid))
	o, _ := traced(t, "fchown:error=EPERM", path)
	o.ok(t)
	wantBytes(t, path, s.new)
	expect.Equal(t, 0o755, identify(t, path).mode, "mode")
}

func TestFileNamedTwiceIsConvertedOnce(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	path := s.place(t, directory)
	o := run(t, "-v", path, path, filepath.Join(directory, ".", "a.o"), directory+"//a.o")
	if o.status != 0 || o.stderr != "" {
		t.Fatalf("got %+v, want status 0", o)
	}
	once := run(t, "-v", "-o", os.DevNull, s.place(t, t.TempDir()))
	if got, want := strings.Count(o.stdout, "\n"), strings.Count(once.stdout, "\n"); got != want || want == 0 {
		t.Errorf("%d sites are printed, want %d:\n%s", got, want, o.stdout)
	}
	wantBytes(t, path, s.new)
	wantOnly(t, directory, "a.o")
}

func TestSymbolicLinkStays(t *testing.T) {
	s := smallSample(t)
	directory, other := t.TempDir(), t.TempDir()
	path, link := s.place(t, other), filepath.Join(directory, "link.o")
	expect.OK(t, os.Symlink(path, link))
	unchanged := identified(t, link)
	run(t, link, path).ok(t)
	unchanged()
	wantBytes(t, path, s.new)
	wantOnly(t, directory, "link.o")
	wantOnly(t, other, "a.o")
}

func TestHardLinksAreFilesOfTheirOwn(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	path, link := s.place(t, directory), filepath.Join(directory, "b.o")
	expect.OK(t, os.Link(path, link))
	run(t, path).ok(t)
	wantBytes(t, path, s.new)
	wantBytes(t, link, s.old)
	run(t, path, link).ok(t)
	wantBytes(t, link, s.new)
	wantOnly(t, directory, "a.o", "b.o")
}

func TestHardLinksNamedTogether(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	path, link := s.place(t, directory), filepath.Join(directory, "b.o")
	expect.OK(t, os.Link(path, link))
	run(t, path, link).ok(t)
	wantBytes(t, path, s.new)
	wantBytes(t, link, s.new)
	wantOnly(t, directory, "a.o", "b.o")
}

func TestOutputToDevNull(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	was := identify(t, os.DevNull)
	run(t, "-o", os.DevNull, s.place(t, directory)).ok(t)
	if now := identify(t, os.DevNull); now.inode != was.inode || now.mode != was.mode {
		t.Fatalf("%s was %+v and is %+v", os.DevNull, was, now)
	}
	wantBytes(t, filepath.Join(directory, "a.o"), s.old)
}

func TestOutputToFullDevice(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	run(t, "-o", "/dev/full", s.place(t, directory)).failed(t, "write /dev/full: no space left on device")
	wantBytes(t, filepath.Join(directory, "a.o"), s.old)
}

// /dev/stdout is a link of this kind, whose text leads nowhere for a pipe: it would be root
// who replaces it.
func TestOutputToLinkOfDescriptor(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	path, link := s.place(t, directory), filepath.Join(directory, "out")
	expect.OK(t, os.Symlink("/proc/self/fd/1", link))
	unchanged := identified(t, link)
	o := run(t, "-o", link, path)
	if o.status != 0 || o.stderr != "" || o.stdout != string(s.new) {
		t.Errorf("got status %d, %q and %d bytes, want the %d of the result", o.status, o.stderr, len(o.stdout), len(s.new))
	}
	if o := run(t, "stubs", "-o", link, path); o.status != 0 || !strings.HasPrefix(o.stdout, elf.ELFMAG) {
		t.Errorf("stubs: got status %d, %q and %d bytes, want an object", o.status, o.stderr, len(o.stdout))
	}
	unchanged()
	wantOnly(t, directory, "a.o", "out")
}

func TestOutputToPipe(t *testing.T) {
	for _, s := range []sample{smallSample(t), largeSample(t), archiveSample(t), archiveSample(t, withIndex)} {
		directory := t.TempDir()
		path, pipe := s.place(t, directory), filepath.Join(directory, "pipe")
		expect.OK(t, syscall.Mkfifo(pipe, 0o600))
		got := make(chan []byte, 1)
		go func() {
			f, err := os.Open(pipe)
			if err != nil {
				got <- nil
				return
			}
			defer f.Close()
			data, _ := io.ReadAll(f)
			got <- data
		}()
		run(t, append(s.flags, "-o", pipe, path)...).ok(t)
		if info := expect.Value(os.Lstat(pipe))(t); info.Mode()&os.ModeNamedPipe == 0 {
			t.Fatalf("the pipe is %v now", info.Mode())
		}
		if data := <-got; !bytes.Equal(data, s.new) {
			t.Errorf("%d bytes came through the pipe, and they are not the %d that are wanted", len(data), len(s.new))
		}
		wantOnly(t, directory, "a.o", "pipe")
	}
}

func TestOutputIntoMissingDirectory(t *testing.T) {
	s := smallSample(t)
	directory := t.TempDir()
	missing := filepath.Join(directory, "missing")
	o := run(t, "-o", filepath.Join(missing, "b.o"), s.place(t, directory))
	o.failed(t, ": no such file or directory")
	wantBytes(t, filepath.Join(directory, "a.o"), s.old)
	wantOnly(t, directory, "a.o")
}

func TestInputThatIsAPipeIsRefused(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe.o")
	expect.OK(t, syscall.Mkfifo(pipe, 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	runCommand(t, exec.CommandContext(ctx, program, pipe)).failed(t, ": is not a regular file")
}

// asNobody runs the program as a user who owns nothing.
func asNobody(t *testing.T, args ...string) outcome {
	t.Helper()
	cmd := exec.Command(program, args...)
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	return runCommand(t, cmd)
}

// openDirectory makes a directory that every user can enter.
func openDirectory(t *testing.T) string {
	t.Helper()
	directory := t.TempDir()
	expect.OK(t, os.Chmod(filepath.Dir(directory), 0o755))
	return directory
}

func TestReadOnlyDirectory(t *testing.T) {
	s := smallSample(t)
	directory := openDirectory(t)
	path := s.place(t, directory)
	expect.OK(t, os.Chmod(directory, 0o555))
	defer os.Chmod(directory, 0o755)
	asNobody(t, path).failed(t, "sdtconvert: "+path+": cannot create a file in "+directory+": permission denied; write the result elsewhere with -o or --output-dir")
	wantBytes(t, path, s.old)
	wantOnly(t, directory, "a.o")
}

func TestUnreadableFile(t *testing.T) {
	s := smallSample(t)
	directory := openDirectory(t)
	path := s.place(t, directory)
	expect.OK(t, os.Chmod(path, 0))
	asNobody(t, path).failed(t, "a.o: permission denied")
	expect.OK(t, os.Chmod(path, 0o600))
	wantBytes(t, path, s.old)
	wantOnly(t, directory, "a.o")
}

// mountFull mounts a file system that has little room.
func mountFull(t *testing.T, size int) string {
	t.Helper()
	directory := t.TempDir()
	if os.Geteuid() != 0 {
		t.Skip("only root can mount")
	}
	if err := syscall.Mount("tmpfs", directory, "tmpfs", 0, fmt.Sprintf("size=%d", size)); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		expect.OK(t, syscall.Unmount(directory, 0))
	})
	return directory
}

func TestFullDisk(t *testing.T) {
	for _, s := range []sample{smallSample(t), largeSample(t)} {
		directory := mountFull(t, len(s.old)+len(s.new)/2)
		path := s.place(t, directory)
		unchanged := identified(t, path)
		run(t, path).failed(t, path+": no space left on device") // and not an unknown name
		wantBytes(t, path, s.old)
		unchanged()
		wantOnly(t, directory, "a.o")
	}
}

func TestReadOnlyFileSystem(t *testing.T) {
	s := smallSample(t)
	directory := mountFull(t, 1<<20)
	path := s.place(t, directory)
	if err := syscall.Mount("", directory, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip(err)
	}
	run(t, path).failed(t, path+": cannot create a file in "+directory+": read-only file system; write the result elsewhere with -o or --output-dir")
	wantBytes(t, path, s.old)
	wantOnly(t, directory, "a.o")
}

// An object that the compiler has written without permission to read it is not left as it is
// in silence.
func TestUnreadableObject(t *testing.T) {
	s := smallSample(t)
	directory := openDirectory(t)
	path := s.place(t, directory)
	expect.OK(t, os.Chmod(directory, 0o777))
	object := filepath.Join(directory, "out.o")
	asNobody(t, "cc", "--", "sh", "-c", "cat "+path+" >"+object+"; chmod 0 "+object, "-o", object).failed(t, "out.o: permission denied")
	wantOnly(t, directory, "a.o")
}

// The compiler can write an object in a directory that is read-only, and sdtconvert can
// neither replace nor remove it.
func TestObjectInReadOnlyDirectory(t *testing.T) {
	s := smallSample(t)
	directory := openDirectory(t)
	path := s.place(t, directory)
	for name, mode := range map[string]os.FileMode{path: 0o666, directory: 0o555} {
		expect.OK(t, os.Chmod(name, mode))
	}
	defer os.Chmod(directory, 0o755)
	o := asNobody(t, "cc", "--", "sh", "-c", "touch "+path, "-o", path)
	want := "sdtconvert: " + path + ": cannot create a file in " + directory + ": permission denied\nsdtconvert: remove " + path + ": permission denied\n"
	if o.status != 1 || o.stderr != want {
		t.Errorf("got %+v, want status 1 and %s", o, want)
	}
	wantBytes(t, path, s.old)
	wantOnly(t, directory, "a.o")
}
