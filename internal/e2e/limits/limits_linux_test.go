package limits

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/tools"
)

// program is the program under test.
var program string

func TestMain(m *testing.M) {
	tools.Main(m, `TestCosts`, &program, nil)
}

// Sizes of files in bytes: each attack is made with the first size and with ten times it.
// With SDTCONVERT_ATTACK the larger is 100 MB.
const (
	usualSize  = 50_000
	attackSize = 10_000_000
	growth     = 10
)

// bounds are what commands may take, as docs/limits.md says: memory in times the size of
// the file, besides base.
var bounds = map[string]int64{
	"convert": 100, "inspect": 120, "list": 100, "check": 150, "stubs": 150, "sites": 100, "provider": 220, "resolve": 100, "ld": 300,
}

const (
	base         = 160 << 20          // bytes of memory that any command may take
	steeper      = 4                  // how many times as steep as the file the work may grow
	littleWork   = 5 * time.Second    // of the processors, which is none
	mostWork     = 600                // seconds of the processors, with any file
	printedShare = 1000               // bytes printed or written for each of the file
	maxMessage   = growth * usualSize // bytes of output that are kept
)

// cost is what a run has cost.
type cost struct {
	memory  int64         // bytes, the peak
	work    time.Duration // of the processors
	printed int64         // bytes
}

// output counts what is printed, and keeps its beginning.
type output struct {
	size int64
	head bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.size += int64(len(b))
	o.head.Write(b[:min(len(b), max(0, maxMessage-o.head.Len()))])
	return len(b), nil
}

// measure runs the program, which has to end by itself with a status of its own.
func measure(t *testing.T, directory string, args []string, most int64) cost {
	t.Helper()
	var out output
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -t "$1"; shift; exec "$@"`, "sh", fmt.Sprint(mostWork), program}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = directory, &out, &out
	expect.OK(t, cmd.Start())
	done := make(chan bool)
	go guard(cmd.Process, 2*most, done)
	err := cmd.Wait()
	close(done)
	if exit := (*exec.ExitError)(nil); err != nil && (!errors.As(err, &exit) || !exit.Exited() || exit.ExitCode() > 3) || bytes.Contains(out.head.Bytes(), []byte("goroutine ")) {
		t.Errorf("%q: %v: %.500s", args, err, out.head.Bytes())
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return cost{int64(usage.Maxrss) << 10, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), out.size}
}

// guard kills a process that takes far too much memory, before the machine suffers.
func guard(p *os.Process, most int64, done <-chan bool) {
	for {
		select {
		case <-done:
			return
		case <-time.After(50 * time.Millisecond):
			text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.Pid))
			var all, resident int64
			if fmt.Sscan(string(text), &all, &resident); resident*int64(os.Getpagesize()) > most {
				p.Kill()
			}
		}
	}
}

// write makes the file of an attack, and what the commands read besides. It returns the
// size of the file.
func (a *attack) write(t *testing.T, directory string, n int) int64 {
	t.Helper()
	data := a.make(n)
	tiny := object(calls(1), callsOf(1, 2, false), one(5, stub)).bytes()
	for name, data := range map[string][]byte{
		"file": data, "tiny.o": tiny, "shop.d": []byte("provider shop { probe placed(); };\n"), "in": []byte("@file @file\n"),
	} {
		disk.Write(t, filepath.Join(directory, name), data)
	}
	return int64(len(data))
}

// run measures a command with the file of a directory.
func (a *attack) run(t *testing.T, directory, command string, size int64) cost {
	t.Helper()
	args := strings.Fields(strings.NewReplacer("FILE", "file", "OUT", "out").Replace(command))
	most := base + bounds[args[0]]*size
	c := measure(t, directory, args, most)
	out := filepath.Join(directory, "out")
	if info, err := os.Stat(out); err == nil {
		c.printed += info.Size()
		expect.OK(t, os.Remove(out))
	}
	if c.memory > most {
		t.Errorf("%s: %d MB of memory for a file of %d KB, want at most %d", command, c.memory/1e6, size/1e3, most/1e6)
	}
	if c.printed > base+printedShare*size {
		t.Errorf("%s: %d MB of output for a file of %d KB", command, c.printed/1e6, size/1e3)
	}
	return c
}

// compare measures all commands with an attack of two sizes.
func (a *attack) compare(t *testing.T, n int) {
	small, large := t.TempDir(), t.TempDir()
	smallSize, largeSize := a.write(t, small, n), a.write(t, large, growth*n)
	debug.FreeOSMemory() // which a process inherits from this one, as its peak
	for _, command := range a.commands {
		before, after := a.run(t, small, command, smallSize), a.run(t, large, command, largeSize)
		if after.work > littleWork+steeper*growth*before.work {
			t.Errorf("%s: %v of work for %d KB, and %v for %d KB", command, before.work, smallSize/1e3, after.work, largeSize/1e3)
		}
		t.Logf("%s: %d KB: %d MB, %v, %d KB of output", command, largeSize/1e3, after.memory/1e6, after.work, after.printed/1e3)
	}
}

// Whatever is in a file, the memory that a command takes is bounded by its size, and the
// work grows as that does.
func TestCostsAreBoundedBySize(t *testing.T) {
	tools.DependOnTree(t)
	n, full := usualSize, os.Getenv("SDTCONVERT_ATTACK") != ""
	if full {
		n = attackSize
	}
	all := append(attacks[:len(attacks):len(attacks)], textAttacks...)
	runs := 0
	for _, a := range product.Few(t.Name(), all) {
		runs += 2 * len(a.commands)
		t.Run(a.name, func(t *testing.T) {
			if !full {
				t.Parallel() // of the largest files one at a time fits into memory
			}
			a.compare(t, n)
		})
	}
	t.Cleanup(func() { t.Logf("%d runs with %d kinds of files, the largest of %d KB", runs, len(all), growth*n/1000) })
}
