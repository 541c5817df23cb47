package attach

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// guards is a program whose probe is behind a test of it.
type guards struct {
	exe, image string   // the image has the probe
	args       []string // what the program takes behind its others
}

// guardModes are the ways to link it: a program with the probe in it, or in a library that
// it is linked with, or that it loads.
var guardModes = []string{"exe", "pie", "library", "dlopen"}

// linkGuards compiles, converts and links the program.
func linkGuards(t *testing.T, c compiler, ld toolchains.Linker, mode string, flags ...string) guards {
	t.Helper()
	p := program{compiler: c, dir: t.TempDir()}
	p.probed = []string{c.compile(t, p.dir, "guards.c")}
	var defines []string
	if mode == "dlopen" {
		defines = []string{"-DLOADED"}
	}
	p.main = c.compile(t, p.dir, "guards_main.c", defines...)
	use := "-B" + linker(t, ld)
	link := func(name string, flags []string, objects ...string) string {
		return p.image(t, name, append(flags, use), objects...)
	}
	probed := p.convert(t, flags...)
	switch mode {
	case "library", "dlopen":
		lib := link("libguarded.so", []string{"-shared"}, probed...)
		if mode == "dlopen" {
			return guards{link("guards", []string{"-pie"}, p.main), lib, []string{lib}}
		}
		return guards{link("guards", []string{"-pie", "-Wl,-rpath," + filepath.Dir(lib)}, p.main, lib), lib, nil}
	case "exe":
		exe := link("guards", []string{"-no-pie"}, append(probed, p.main)...)
		return guards{exe, exe, nil}
	}
	exe := link("guards", []string{"-pie"}, append(probed, p.main)...)
	return guards{exe, exe, nil}
}

// eachGuards runs a test with the program of each linker, in some modes.
func eachGuards(t *testing.T, modes []string, test func(t *testing.T, g guards)) {
	productOfGuards(modes, test).Run(t)
}

// someGuards is eachGuards for a test of a tracer: what linkers make of guards in each mode,
// TestGuardsUnderGDB shows.
func someGuards(t *testing.T, modes []string, test func(t *testing.T, g guards)) {
	all := productOfGuards(modes, test)
	all.Singly = true
	all.Run(t)
}

func productOfGuards(modes []string, test func(t *testing.T, g guards)) *product.Tests {
	all := product.New("compiler", "linker", "mode")
	for _, c := range []compiler{gcc, clang} {
		for _, ld := range linkers {
			for _, mode := range modes {
				if mode != "pie" && (c == clang || ld.Family == "gold") {
					continue
				}
				all.Add(c.cc.Name+"/"+ld.Name+"/"+mode, []string{c.cc.Name, ld.Name, mode}, func(t *testing.T) {
					t.Parallel()
					tools.Need(t, c.machine.CC(c.cc)[0], c.driver())
					test(t, linkGuards(t, c, ld, mode))
				})
			}
		}
	}
	return all
}

// script has bpftrace print firstHit at each hit, and count the hits of each process with each
// argument. It loses lines when it ends, but prints its counts then.
func (g guards) script() string {
	return "usdt:" + g.image + `:shop:item { printf("` + firstHit + `\n"); @hits[pid, arg0] = count(); }`
}

// firstHit is the line that tells that a tracer has attached.
const firstHit = "hit"

var bpftraceHit = regexp.MustCompile(`(?m)^@hits\[(\d+), (\d+)\]: 1$`)

// watch is a tracer that runs.
type watch struct {
	*tools.Program
	attached atomic.Bool // it has printed firstHit
	out      chan string // what it has printed, when it has ended
}

func startWatch(t *testing.T, cmd *exec.Cmd) *watch {
	t.Helper()
	cmd.Stderr = os.Stderr
	w := &watch{Program: tools.StartCommand(t, cmd), out: make(chan string, 1)}
	go func() {
		var out strings.Builder
		for line := range w.Lines() {
			out.WriteString(line + "\n")
			w.attached.CompareAndSwap(false, line == firstHit)
		}
		w.out <- out.String()
	}()
	return w
}

// end ends the tracer, and returns what it has printed.
func (w *watch) end(t *testing.T) string {
	t.Helper()
	done := make(chan bool)
	defer close(done)
	go interrupt(w.Program, done)
	out := <-w.out
	if err := w.End(); err != nil {
		t.Errorf("%s: %v\n%s", w.Path, err, out)
	}
	return out
}

// interrupt interrupts a tracer until it is done: a signal that it does not expect yet is
// lost. One that comes when it has begun to end, and catches none any more, would kill it.
func interrupt(tracer *tools.Program, done chan bool) {
	status := fmt.Sprintf("/proc/%d/status", tracer.Process.Pid)
	for again := time.Tick(time.Second); ; {
		if text, err := os.ReadFile(status); err == nil && catchesInterrupts(string(text)) {
			tracer.Process.Signal(os.Interrupt)
		}
		select {
		case <-again:
		case <-done:
			return
		}
	}
}

// catchesInterrupts recognises it of a process by its /proc/PID/status.
func catchesInterrupts(status string) bool {
	_, after, _ := strings.Cut(status, "SigCgt:")
	caught, _, _ := strings.Cut(strings.TrimSpace(after), "\n")
	mask, err := strconv.ParseUint(caught, 16, 64)
	return err == nil && mask&(1<<(syscall.SIGINT-1)) != 0
}

// TestGuardsOfAll traces every process that has the image, a child of one too.
func TestGuardsOfAll(t *testing.T) {
	someGuards(t, guardModes, func(t *testing.T, g guards) {
		tools.NeedUprobes(t)
		run := func(words ...string) string { return tools.Must(t, g.exe, append(words, g.args...)...) }
		if got := run("2"); got != "all: 0 of 2\n" {
			t.Errorf("without a tracer: %s", got)
		}
		w := startWatch(t, exec.Command("bpftrace", "-e", g.script()))
		expect.Soon(t, func() bool { // the semaphore is up before the tracer counts
			return run("1") == "all: 1 of 1\n" && w.attached.Load()
		}, "the guard is true and the tracer counts")
		if got := run("3"); got != "all: 3 of 3\n" {
			t.Errorf("traced: %s", got)
		}
		if got := run("fork", "4"); got != "parent: 4 of 4\nchild: 4 of 4\n" {
			t.Errorf("traced, with a child: %s", got)
		}
		hits := map[string]int{} // of processes
		for _, m := range bpftraceHit.FindAllStringSubmatch(w.end(t), -1) {
			hits[m[1]]++
		}
		by := map[int]int{}
		for _, n := range hits {
			by[n]++
		}
		if by[3] != 1 || by[4] != 2 {
			t.Errorf("hits of processes: %v", hits)
		}
		if got := run("2"); got != "all: 0 of 2\n" {
			t.Errorf("when the tracer is gone: %s", got)
		}
	})
}

// asked is a running program whose guards are asked about.
type asked struct {
	*tools.Program
	t *testing.T
}

func (g guards) start(t *testing.T) asked {
	t.Helper()
	p := tools.Start(t, g.exe, g.args...)
	p.Until(t, "ready")
	return asked{p, t}
}

// ask runs the probe once, and returns its argument and whether the guard was true.
func (a asked) ask() (n int, enabled bool) {
	a.t.Helper()
	fmt.Fprintln(a.Stdin)
	for line := range a.Lines() {
		var value int
		if _, err := fmt.Sscanf(line, "%d: %d", &n, &value); err != nil || value < 0 || value > 1 {
			a.t.Fatalf("the program prints %q: %v", line, err)
		}
		return n, value == 1
	}
	a.t.Fatal("the program has ended")
	return 0, false
}

// TestGuardsOfAProcess attaches to a process, and leaves it again.
func TestGuardsOfAProcess(t *testing.T) {
	someGuards(t, guardModes, func(t *testing.T, g guards) {
		tools.NeedUprobes(t)
		a := g.start(t)
		if _, enabled := a.ask(); enabled {
			t.Error("the guard is true before")
		}
		for range 2 { // it may come again
			w := startWatch(t, exec.Command("bpftrace", "-p", strconv.Itoa(a.Process.Pid), "-e", g.script()))
			expect.Soon(t, func() bool {
				_, enabled := a.ask()
				return enabled && w.attached.Load()
			}, "the guard is true and the tracer counts")
			var want []string
			for range 5 {
				n, enabled := a.ask()
				if !enabled {
					t.Error("the guard is false while it is traced")
				}
				want = append(want, strconv.Itoa(n))
			}
			var got []string
			for _, m := range bpftraceHit.FindAllStringSubmatch(w.end(t), -1) {
				got = append(got, m[2])
			}
			for _, n := range want {
				if !slices.Contains(got, n) {
					t.Errorf("hits %v, want %v", got, want)
				}
			}
			if _, enabled := a.ask(); enabled {
				t.Error("the guard is true when the tracer is gone")
			}
		}
	})
}

// gdbHits has gdb stop at the probe so often, and leave the process.
const gdbHits = `set $hits = 0
break -probe-stap shop:item
commands
silent
set $hits = $hits + 1
printf "> %%d\n", (int)$_probe_arg0
if $hits < %d
continue
end
end
continue
delete
detach
`

// TestGuardsUnderGDB is TestGuardsOfAProcess with gdb.
func TestGuardsUnderGDB(t *testing.T) {
	const times = 3
	eachGuards(t, guardModes, func(t *testing.T, g guards) {
		tools.Need(t, "gdb")
		a := g.start(t)
		file := filepath.Join(t.TempDir(), "script.gdb")
		disk.Write(t, file, tools.GDBSettings+fmt.Sprintf(gdbHits, times))
		out := make(chan string)
		go func() {
			text, err := tools.Try("gdb", "-nx", "-batch", "-p", strconv.Itoa(a.Process.Pid), "-x", file)
			out <- fmt.Sprint(text, err)
		}()
		var text string
		for hits := 0; text == ""; {
			select {
			case text = <-out:
			default:
				if _, enabled := a.ask(); enabled {
					hits++
				}
				time.Sleep(10 * time.Millisecond)
			}
			if hits > times {
				t.Errorf("%d guards are true, want %d", hits, times)
			}
		}
		if strings.Contains(text, "ptrace: ") {
			tools.Unavailable(t, "gdb cannot attach: "+text)
		}
		if hits := reported.FindAllString(text, -1); len(hits) != times {
			t.Errorf("gdb has %d hits: %s", len(hits), text)
		}
		if _, enabled := a.ask(); enabled {
			t.Error("the guard is true when gdb is gone")
		}
	})
}
