//go:build linux

package safety

import (
	"bytes"
	"fmt"
	"path/filepath"
	"syscall"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
)

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
