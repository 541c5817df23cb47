package trace

import (
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// The tracer runs where a thread does that meets one breakpoint after the other, and anywhere when there are several.
func TestFollower(t *testing.T) {
	tools.Need(t, "ps", "sleep")
	runtime.LockOSThread() // the goroutine ends with the thread
	sleep := exec.Command("sleep", "100")
	expect.OK(t, sleep.Start())
	defer sleep.Wait()
	defer sleep.Process.Kill()
	thread := sleep.Process.Pid
	affinity := func() (set unix.CPUSet) {
		expect.OK(t, unix.SchedGetaffinity(0, &set))
		return set
	}
	before := affinity()
	var f follower
	for range followEvery - 1 {
		f.hit(thread)
	}
	expect.Equal(t, before, affinity(), "too few hits")
	f.hit(thread)
	var want unix.CPUSet
	processor := strings.TrimSpace(tools.Must(t, "ps", "-o", "psr=", "-p", strconv.Itoa(thread)))
	want.Set(expect.Value(strconv.Atoi(processor))(t))
	expect.Equal(t, want, affinity())
	f.hit(thread + 1)
	expect.Equal(t, before, affinity(), "another thread")
	for range followEvery {
		f.hit(thread)
	}
	f.end()
	expect.Equal(t, before, affinity(), "at the end")
}
