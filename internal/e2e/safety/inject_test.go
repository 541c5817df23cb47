//go:build linux

package safety

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
)

// writeSide are the system calls that may change something, and openat, which
// does so sometimes.
var writeSide = []string{
	"openat", "write", "ftruncate", "fallocate",
	"fchmod", "fchown", "close", "rename", "renameat", "renameat2",
}

// always are those that every conversion makes.
var always = []string{"openat", "write", "fchmod", "close", "renameat"}

// traced runs the program under strace. The log tells what was injected.
func traced(t *testing.T, inject, path string, flags ...string) (outcome, string) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	args := []string{"-f", "-qq", "-o", log, "-e", "trace=" + strings.Join(writeSide, ",")}
	if inject != "" {
		args = append(args, "-e", "inject="+inject)
	}
	args = append(append(args, program, "-j", "1", path), flags...)
	cmd := exec.Command("strace", args...)
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // few threads: strace counts calls of each by itself
	o := runCommand(t, cmd)
	return o, string(disk.Read(t, log))
}

var call = regexp.MustCompile(`(?m)^(\d+) +(\w+)\(`)

// countCalls returns how often a thread makes each call at most.
func countCalls(log string) map[string]int {
	most, count := map[string]int{}, map[string]int{}
	for _, m := range call.FindAllStringSubmatch(log, -1) {
		count[m[0]]++
		most[m[2]] = max(most[m[2]], count[m[0]])
	}
	return most
}

// eachCall runs check for every call of the write side: name is the system
// call, and when its number.
func eachCall(t *testing.T, s sample, check func(t *testing.T, directory, name string, when int)) {
	t.Helper()
	for kind, directory := range directories(t) {
		if testing.Short() && kind == "disk" {
			continue
		}
		_, log := traced(t, "", s.place(t, directory), s.flags...)
		counts := countCalls(log)
		for _, name := range always {
			if counts[name] == 0 {
				t.Fatalf("no %s in:\n%s", name, log)
			}
		}
		for _, name := range writeSide {
			for when := 1; when <= counts[name]; when++ {
				t.Run(fmt.Sprintf("%s/%s/%d", kind, name, when), func(t *testing.T) { check(t, directory, name, when) })
			}
		}
	}
}

func killAtEachCall(t *testing.T, s sample) {
	tools.Need(t, "strace")
	killed := map[string]bool{}
	untilSeen(t, s, killed, always, func(t *testing.T, directory, name string, when int) {
		path := s.place(t, directory)
		defer clean(t, directory)
		was := identify(t, path)
		o, _ := traced(t, fmt.Sprintf("%s:signal=KILL:when=%d", name, when), path, s.flags...)
		switch {
		case o.signal == syscall.SIGKILL:
			killed[name] = true
			if got := disk.Read(t, path); !bytes.Equal(got, s.old) && !bytes.Equal(got, s.new) {
				t.Fatalf("killed, the file has %d bytes, neither the old ones nor the new", len(got))
			}
		default: // another thread made the call
			o.ok(t)
			wantBytes(t, path, s.new)
		}
		if now := identify(t, path); now.mode != was.mode {
			t.Fatalf("mode was %v and is %v", was.mode, now.mode)
		}
	})
}

// untilSeen is eachCall, again and again until check has put all that is needed
// into seen: which thread makes a call, and as which of its calls, is a matter
// of luck, and strace counts those of each thread by itself.
func untilSeen(t *testing.T, s sample, seen map[string]bool, needed []string, check func(t *testing.T, directory, name string, when int)) {
	t.Helper()
	missing := func() []string {
		return slices.DeleteFunc(slices.Clone(needed), func(what string) bool { return seen[what] })
	}
	eachCall(t, s, check)
	for round := 1; round < 10 && len(missing()) > 0 && !t.Failed(); round++ {
		eachCall(t, s, check)
	}
	if len(missing()) > 0 && !t.Failed() {
		t.Errorf("no run ended by %q", missing())
	}
}

// clean empties a directory, of the temporary file of a killed run for one.
func clean(t *testing.T, directory string) {
	for _, e := range expect.Value(os.ReadDir(directory))(t) {
		os.RemoveAll(filepath.Join(directory, e.Name()))
	}
}

func TestKillLeavesTheOldOrTheNewFile(t *testing.T)      { killAtEachCall(t, smallSample(t)) }
func TestKillLeavesTheOldOrTheNewLargeFile(t *testing.T) { killAtEachCall(t, largeSample(t)) }

// faults returns the errors that a system call may end in. Others that only mean
// that a kernel or a file system cannot do something are not failures.
func faults(name string) []string {
	switch name {
	case "renameat", "renameat2", "rename", "fchmod":
		return []string{"EPERM", "EIO", "ENOSPC"}
	}
	return []string{"EIO", "ENOSPC"}
}

var errorTexts = map[string]string{
	"EPERM": "operation not permitted", "EIO": "input/output error", "ENOSPC": "no space left on device",
}

// messageFault is a write of the message that meets the fault, too: strace counts the calls of each thread
// by itself.
var messageFault = regexp.MustCompile(`write\(2, .*INJECTED`)

func failEachCall(t *testing.T, s sample) {
	tools.Need(t, "strace")
	var needed []string
	for _, name := range always {
		for _, fault := range faults(name) {
			needed = append(needed, name+" "+fault)
		}
	}
	failed := map[string]bool{}
	untilSeen(t, s, failed, needed, func(t *testing.T, directory, name string, when int) {
		for _, fault := range faults(name) {
			path := s.place(t, directory)
			was := identify(t, path)
			o, log := traced(t, fmt.Sprintf("%s:error=%s:when=%d", name, fault, when), path, s.flags...)
			if o.status == 0 { // the call does not matter, or another thread made it
				o.ok(t)
				wantBytes(t, path, s.new)
			} else {
				if !strings.Contains(log, "INJECTED") {
					t.Fatalf("fails without a fault: %+v", o)
				}
				failed[name+" "+fault] = true
				if !messageFault.MatchString(log) {
					o.failed(t, ": "+errorTexts[fault])
				}
				wantBytes(t, path, s.old)
				if now := identify(t, path); now != was {
					t.Fatalf("the file was %+v and is %+v", was, now)
				}
			}
			wantOnly(t, directory, "a.o")
		}
	})
}

func TestFaultLeavesTheFileAsItWas(t *testing.T) { failEachCall(t, smallSample(t)) }

func TestFaultLeavesTheLargeFileAsItWas(t *testing.T) { failEachCall(t, largeSample(t)) }

var members = []string{"comdat.amd64-gcc12-O2.o", "calls.amd64-gcc12-O2.o"}

// collect makes an archive of the members in a directory, where they are written first.
func collect(t *testing.T, directory, operation string) string {
	t.Helper()
	for _, name := range members {
		disk.Write(t, filepath.Join(directory, name), objects.Read(t, name))
	}
	tools.Command{Directory: directory}.Must(t, "ar", append([]string{operation, "lib.a"}, members...)...)
	return filepath.Join(directory, "lib.a")
}

// withIndex are flags with which the index of an archive keeps its length, so that it is written into the
// gap that is left for it. With notes there is one more symbol, and all is copied once more.
const withIndex = "--layout=pairs"

func archiveSample(t *testing.T, flags ...string) sample {
	t.Helper()
	tools.Need(t, "ar")
	return newSample(t, disk.Read(t, collect(t, t.TempDir(), "rcsD")), flags...)
}

func TestKillLeavesTheOldOrTheNewArchive(t *testing.T) {
	killAtEachCall(t, archiveSample(t, withIndex))
}

func TestFaultLeavesTheArchiveAsItWas(t *testing.T) { failEachCall(t, archiveSample(t, withIndex)) }

// Whenever the conversion of a thin archive ends, its members are the old objects or
// the new ones, the archive is the old one or the new one, which comes last, and
// another run completes what is missing.
func TestKillLeavesAThinArchiveToBeCompleted(t *testing.T) {
	tools.Need(t, "strace", "ar")
	directory := t.TempDir()
	old := map[string][]byte{}
	path := collect(t, directory, "rcsDT")
	names := append([]string{"lib.a"}, members...)
	for _, name := range names {
		old[name] = disk.Read(t, filepath.Join(directory, name))
	}
	_, log := traced(t, "", path)
	done := map[string][]byte{}
	for _, name := range names {
		if done[name] = disk.Read(t, filepath.Join(directory, name)); bytes.Equal(done[name], old[name]) {
			t.Fatalf("%s has not changed", name)
		}
	}
	killed := 0
	counts := countCalls(log)
	for _, name := range writeSide {
		for when := 1; when <= counts[name]; when++ {
			t.Run(fmt.Sprintf("%s/%d", name, when), func(t *testing.T) {
				clean(t, directory)
				collect(t, directory, "rcsDT")
				o, _ := traced(t, fmt.Sprintf("%s:signal=KILL:when=%d", name, when), path)
				if o.signal == syscall.SIGKILL {
					killed++
				}
				missing := 0
				for _, name := range names {
					switch got := disk.Read(t, filepath.Join(directory, name)); {
					case bytes.Equal(got, old[name]):
						missing++
					case !bytes.Equal(got, done[name]):
						t.Fatalf("%s is neither the old one nor the new one", name)
					}
				}
				if missing > 0 && bytes.Equal(disk.Read(t, path), done["lib.a"]) {
					t.Error("the archive is ahead of its members")
				}
				run(t, path).ok(t)
				for _, name := range names {
					wantBytes(t, filepath.Join(directory, name), done[name])
				}
			})
		}
	}
	if killed < len(names) {
		t.Errorf("only %d runs were killed", killed)
	}
}
