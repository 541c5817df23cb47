package trace

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// busy compiles the busy program for a test that runs beside others, and runs it untraced.
func busy(t *testing.T, threads, rounds int) (program []string, want string) {
	t.Helper()
	parallel(t)
	program = []string{compile(t, gcc(), "testdata/busy.c"), strconv.Itoa(threads), strconv.Itoa(rounds)}
	cmd := exec.Command(program[0], program[1:]...)
	out, err := cmd.Output()
	exitedWith(t, err, 7)
	return program, string(out)
}

func exitedWith(t *testing.T, err error, status int) {
	t.Helper()
	exit := (*exec.ExitError)(nil)
	if !errors.As(err, &exit) || exit.ExitCode() != status {
		t.Fatalf("got %v, want status %d", err, status)
	}
}

var countLine = regexp.MustCompile(`(?m)^ +(\d+) (\S+)$`)

// counts reads what -c has printed.
func counts(text string) map[string]int {
	all := map[string]int{}
	for _, match := range countLine.FindAllStringSubmatch(text, -1) {
		n, _ := strconv.Atoi(match[1])
		parts := strings.Split(match[2], ":")
		all[parts[len(parts)-1]] = n
	}
	return all
}

// 16 threads with signals on small stacks, children and spawned programs: the results are those of the program alone, its
// exit status is passed on, and each hit is counted, of children if they are followed.
func TestBusy(t *testing.T) {
	program, want := busy(t, 16, 1500)
	for _, flags := range [][]string{{"-c"}, {"-c", "-f"}, {"-c", "--breakpoints"}, {"-c", "-f", "--breakpoints"}, {"-c", "--filter", "arg0 != 1"}} {
		t.Run(strings.Join(flags, " "), func(t *testing.T) {
			args := append(append([]string{"trace"}, flags...), append([]string{"--"}, program...)...)
			out, messages, err := tools.Command{}.Apart(converter, args...)
			exitedWith(t, err, 7)
			expect.Contains(t, out, want)
			got := counts(out)
			children := 0
			if slices.Contains(flags, "-f") {
				children = 3 * 100
			}
			if slices.Contains(flags, "--filter") {
				// Events that find no room while the tracer waits for a processor are counted.
				var dropped int
				if match := regexp.MustCompile(`, (\d+) dropped;`).FindStringSubmatch(messages); match != nil {
					dropped, _ = strconv.Atoi(match[1])
				}
				missing := 16*1500 - got["mix"] + 16*1499 - got["guarded"]
				if got["mix"] > 16*1500 || got["guarded"] > 16*1499 || missing > dropped {
					t.Errorf("got %v, %d dropped", got, dropped)
				}
				return
			}
			var signals int
			_, err = fmt.Sscanf(messages, "signals %d", &signals)
			expect.OK(t, err, "%s", messages)
			expect.Equal(t, map[string]int{"mix": 16*1500 + children, "guarded": 16 * 1500, "signal": signals}, got)
		})
	}
}

// code returns the executable bytes of a program's file, and those that a process has of it.
func code(t *testing.T, path string, pid int) (file, memory []byte) {
	t.Helper()
	o := expect.Value(elf.Open(path))(t)
	defer o.Close()
	maps := string(disk.Read(t, fmt.Sprintf("/proc/%d/maps", pid)))
	for line := range strings.Lines(maps) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[5] != path || !strings.Contains(fields[1], "x") {
			continue
		}
		var start, end, offset uint64
		fmt.Sscanf(fields[0], "%x-%x", &start, &end)
		fmt.Sscanf(fields[2], "%x", &offset)
		f := expect.Value(os.Open(fmt.Sprintf("/proc/%d/mem", pid)))(t)
		defer f.Close()
		piece := make([]byte, end-start)
		expect.Value(f.ReadAt(piece, int64(start)))(t)
		memory = append(memory, piece...)
		whole := disk.Read(t, path)
		piece = make([]byte, end-start)
		copy(piece, whole[offset:])
		file = append(file, piece...)
	}
	if len(file) == 0 {
		t.Fatalf("no code of %s in\n%s", path, maps)
	}
	return file, memory
}

// start starts the busy program for many rounds. The function that it returns waits for the end, and compares the result.
func start(t *testing.T) (pid int, path string, end func()) {
	t.Helper()
	program, want := busy(t, 4, 1500000)
	pid, end = again(t, program, want)
	return pid, program[0], end
}

// again starts a busy program that was compiled.
func again(t *testing.T, program []string, want string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command(program[0], program[1:]...)
	var out bytes.Buffer
	cmd.Stdout = &out
	expect.OK(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd.Process.Pid, func() {
		t.Helper()
		exitedWith(t, cmd.Wait(), 7)
		expect.Equal(t, want, out.String())
	}
}

// A tracer comes and goes many times while threads run. Each time the code is armed, and byte for byte what it was afterwards.
func TestAttachAndDetach(t *testing.T) {
	pid, path, end := start(t)
	hits := 0
	for i := range tools.Cases(t, 15) {
		args := []string{"trace", "-c", "--for", "5ms", "-p", strconv.Itoa(pid)}
		if i%5 == 4 {
			args[1] = "--filter=arg0 == 0"
		}
		out, messages, err := tools.Command{}.Apart(converter, args...)
		if err != nil {
			if syscall.Kill(pid, 0) == nil && i == 0 {
				t.Fatal(messages)
			}
			break // the program has ended
		}
		hits += counts(out)["mix"]
		if file, memory := code(t, path, pid); !bytes.Equal(file, memory) {
			t.Fatal("the code is not what it was")
		}
	}
	if hits == 0 {
		t.Error("nothing was seen")
	}
	end()
}

// Tracers are killed at any time. The program computes what it computes, and the next tracer puts its code back.
func TestKilled(t *testing.T) {
	pid, path, end := start(t)
	for i := range tools.Cases(t, 16) {
		flags := []string{"trace", "-p", strconv.Itoa(pid)}
		if i%4 > 1 {
			flags = append(flags, "--breakpoints")
		}
		after := time.Duration(10+i*7%50) * time.Millisecond
		if i%2 > 0 {
			killTracer(t, after, flags...)
			continue
		}
		cmd := exec.Command(converter, flags...)
		expect.OK(t, cmd.Start())
		time.Sleep(after)
		cmd.Process.Kill()
		cmd.Wait()
	}
	deadline := time.Now().Add(5 * time.Second)
	for { // the tracer of a keeper that was killed may still be at work
		_, messages, err := tools.Command{}.Apart(converter, "trace", "-c", "--for", "5ms", "-p", strconv.Itoa(pid), "signal")
		if err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(messages)
		}
	}
	if file, memory := code(t, path, pid); !bytes.Equal(file, memory) {
		t.Error("the code is not what it was")
	}
	end()
}

// Threads meet breakpoints all the time. The tracer ends when it is asked to, and no thread meets one that is gone; if the tracer is
// killed, the program goes on by itself, and the next tracer finds what it has left.
func TestHotBreakpoints(t *testing.T) {
	needPtrace(t)
	program := compile(t, gcc(), "testdata/hot.c")
	cmd := exec.Command(program)
	stop := expect.Value(cmd.StdinPipe())(t)
	var out bytes.Buffer
	cmd.Stdout = &out
	expect.OK(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	handled := func() string { // a mask
		status := string(disk.Read(t, fmt.Sprintf("/proc/%d/status", cmd.Process.Pid)))
		return regexp.MustCompile(`SigCgt:\t(\w+)`).FindStringSubmatch(status)[1]
	}
	expect.Soon(t, func() bool { return strings.HasSuffix(handled(), "100000000") }) // the C library's, for threads
	before := handled()
	flags := []string{"trace", "-c", "--breakpoints", "-p", strconv.Itoa(cmd.Process.Pid)}
	for i := range tools.Cases(t, 24) {
		if i%2 == 0 {
			out, messages, err := tools.Command{}.Apart(converter, append(flags, "--for", "10ms")...)
			expect.OK(t, err, "%s", messages)
			if counts(out)["tick"] == 0 {
				t.Error("nothing was seen")
			}
			continue
		}
		killTracer(t, 50*time.Millisecond, flags...)
	}
	tools.Must(t, converter, append(flags, "--for", "10ms")...)
	if file, memory := code(t, program, cmd.Process.Pid); !bytes.Equal(file, memory) {
		t.Error("the code is not what it was")
	}
	expect.Equal(t, before, handled(), "handlers of signals")
	expect.OK(t, stop.Close())
	expect.OK(t, cmd.Wait())
	expect.Equal(t, "fine\n", out.String())
}

// A tracer that ends lets go of children that are forked at that moment.
func TestForksAtEnd(t *testing.T) {
	parallel(t)
	cmd := exec.Command(compile(t, gcc(), "testdata/forks.c"))
	var out bytes.Buffer
	cmd.Stdout = &out
	expect.OK(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	for i := range tools.Cases(t, 24) {
		flags := []string{"trace", "-c", "-f", "--for", "20ms", "-p", strconv.Itoa(cmd.Process.Pid)}
		if i%4 > 0 {
			flags = append(flags, "--breakpoints")
		}
		tools.Must(t, converter, flags...)
	}
	expect.OK(t, cmd.Process.Signal(syscall.SIGTERM))
	expect.OK(t, cmd.Wait())
	expect.Equal(t, "0 bad\n", out.String())
}

// A tracer that attaches while a child of vfork runs in the program's memory waits for its end: the child, which is not traced, would meet
// breakpoints.
func TestVforkAtBegin(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), write(t, "lent.c", `#define _GNU_SOURCE
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sdt.h>
__attribute__((noinline)) static void hit(int i) { DTRACE_PROBE1(lent___hit, int, i); }
int main(void)
{
	int status;
	puts("ready");
	fflush(stdout);
	pid_t child = vfork();
	if (child == 0) {
		for (int i = 0; i < 600; i++) {
			hit(i);
			usleep(1000);
		}
		_exit(7);
	}
	waitpid(child, &status, 0);
	for (int i = 0; i < 300; i++) {
		hit(i);
		usleep(1000);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
`))
	for _, flags := range [][]string{{"-c"}, {"-c", "--breakpoints"}} {
		cmd := exec.Command(program)
		out := expect.Value(cmd.StdoutPipe())(t)
		expect.OK(t, cmd.Start())
		expect.Value(out.Read(make([]byte, 6)))(t)
		text, messages, err := tools.Command{}.Apart(converter, append(append([]string{"trace"}, flags...), "-p", strconv.Itoa(cmd.Process.Pid))...)
		expect.OK(t, err, "%s", messages)
		exitedWith(t, cmd.Wait(), 7)
		if n := counts(text)["hit"]; n == 0 || n > 300 {
			t.Errorf("%s: got %d hits of 300", flags, n)
		}
	}
}

// A SIGTRAP that a process sends is the program's, and no hit, wherever the thread is.
func TestSentSignals(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), write(t, "sent.c", `#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sdt.h>
static volatile int got;
static void handle(int signal) { got++; }
__attribute__((noinline)) static void hit(int i) { DTRACE_PROBE1(sent___hit, int, i); }
int main(void)
{
	signal(SIGTRAP, handle);
	int i = 0;
	pid_t child = fork();
	if (child == 0) {
		for (int n = 0; n < 300; n++) {
			kill(getppid(), SIGTRAP);
			usleep(1000);
		}
		_exit(0);
	}
	while (waitpid(child, 0, WNOHANG) == 0)
		hit(i++);
	fprintf(stderr, "hits %d\n", i);
	return got > 0 ? 3 : 4;
}
`))
	for _, flags := range [][]string{{"-c"}, {"-c", "--breakpoints"}} {
		text, messages, err := tools.Command{}.Apart(converter, append(append([]string{"trace"}, flags...), "--", program)...)
		exitedWith(t, err, 3)
		var hits int
		_, err = fmt.Sscanf(messages, "hits %d", &hits)
		expect.OK(t, err, "%s", messages)
		expect.Equal(t, hits, counts(text)["hit"], "%s", flags)
	}
}

// killTracer starts a tracer and kills it, not the process that keeps it.
func killTracer(t *testing.T, after time.Duration, flags ...string) {
	t.Helper()
	cmd := exec.Command(converter, flags...)
	cmd.Env = append(os.Environ(), "SDTCONVERT_TRACE_KEEPER=1")
	read, write, err := os.Pipe()
	expect.OK(t, err)
	defer write.Close()
	defer read.Close()
	cmd.ExtraFiles = []*os.File{read}
	expect.OK(t, cmd.Start())
	time.Sleep(after)
	cmd.Process.Kill()
	cmd.Wait()
}

// System calls that wait are not disturbed by a tracer that comes and goes.
func TestWaits(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), "testdata/waits.c")
	cmd := exec.Command(program)
	var out bytes.Buffer
	cmd.Stdout = &out
	expect.OK(t, cmd.Start())
	time.Sleep(100 * time.Millisecond)
	seen := ""
	for range 8 {
		lines, _, err := tools.Command{}.Apart(converter, "trace", "--for", "300ms", "-p", strconv.Itoa(cmd.Process.Pid))
		if err != nil {
			break
		}
		seen += lines
	}
	expect.OK(t, cmd.Wait())
	expect.Equal(t, "done\n", out.String())
	for _, text := range []string{`"nanosleep"`, `"read"`, `"poll"`} {
		if !strings.Contains(seen, text) {
			t.Logf("not seen: %s", text) // it fell between two runs
		}
	}
}

// A library that is loaded, unloaded and loaded again is traced each time.
func TestLibraries(t *testing.T) {
	parallel(t)
	library := compile(t, gcc(), "testdata/plugin.c", "-shared", "-fPIC")
	program := compile(t, gcc(), "testdata/loads.c", "-ldl")
	got := trace(t, "--", program, library)
	expect.OK(t, got.err, "%s", got.messages)
	seen := map[string]int{}
	for _, line := range got.lines {
		seen[withoutFunction(line)]++
	}
	for i := range 3 {
		if n := seen[fmt.Sprintf("plugin:called(%d)", i)]; n < 50 { // the first calls come before the tracer has looked
			t.Errorf("round %d: %d calls seen of 100", i, n)
		}
		expect.Equal(t, 1, seen[fmt.Sprintf("loads:unloaded(%d)", i)], "unloaded %d", i)
	}
}

// The end of a program is its own: its status, and signals.
func TestStatus(t *testing.T) {
	parallel(t)
	for _, c := range []struct {
		script string
		status int
		signal syscall.Signal
	}{{"exit 0", 0, 0}, {"exit 42", 42, 0}, {"kill -TERM $$", -1, syscall.SIGTERM}, {"kill -KILL $$", -1, syscall.SIGKILL}, {"kill -TRAP $$", -1, syscall.SIGTRAP}} {
		cmd := exec.Command(converter, "trace", "-c", "--", "sh", "-c", c.script)
		cmd.Run()
		status, _ := cmd.ProcessState.Sys().(syscall.WaitStatus)
		if cmd.ProcessState.ExitCode() != c.status || c.signal != 0 && status.Signal() != c.signal {
			t.Errorf("%s: got %v", c.script, cmd.ProcessState)
		}
	}
}

// A traced program has the files, environment and ignored signals that it has untraced.
func TestEnvironment(t *testing.T) {
	parallel(t)
	script := `ls /proc/self/fd; env | grep -v '^_=' | sort; grep -E '^Sig(Blk|Ign|Cgt)' /proc/self/status; ulimit -a`
	want := tools.Output(t, "sh", "-c", script)
	out, _, err := tools.Command{}.Apart(converter, "trace", "-c", "--", "sh", "-c", script)
	expect.OK(t, err)
	expect.Equal(t, want, out)
}

// A process that is stopped by job control stays stopped while a tracer comes and goes.
func TestStopped(t *testing.T) {
	pid, path, end := start(t)
	expect.OK(t, syscall.Kill(pid, syscall.SIGSTOP))
	state := func() string {
		text := string(disk.Read(t, fmt.Sprintf("/proc/%d/stat", pid)))
		return text[strings.LastIndex(text, ")")+2:][:1]
	}
	expect.Soon(t, func() bool { return state() == "T" })
	out := tools.Output(t, converter, "trace", "-c", "--for", "50ms", "-p", strconv.Itoa(pid))
	expect.Equal(t, 0, counts(out)["mix"])
	expect.Equal(t, "T", state())
	if file, memory := code(t, path, pid); !bytes.Equal(file, memory) {
		t.Error("the code is not what it was")
	}
	expect.OK(t, syscall.Kill(pid, syscall.SIGCONT))
	end()
}

// What another tracer has armed is left alone, and said.
func TestOthers(t *testing.T) {
	tools.Need(t, "gdb")
	pid, _, end := start(t)
	gdb := exec.Command("gdb", "-q", "-nx", "-batch", "-p", strconv.Itoa(pid), "-ex", "shell sleep 2", "-ex", "detach")
	expect.OK(t, gdb.Start())
	traced := func() bool {
		return !strings.Contains(string(disk.Read(t, fmt.Sprintf("/proc/%d/status", pid))), "TracerPid:\t0")
	}
	expect.Soon(t, traced)
	_, messages, err := tools.Command{}.Apart(converter, "trace", "-p", strconv.Itoa(pid))
	exitedWith(t, err, 1)
	expect.Contains(t, messages, "(gdb) traces it already: end that first")
	gdb.Wait()
	// A breakpoint of somebody else at a site.
	file := expect.Value(os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0))(t)
	defer file.Close()
	listed := tools.Output(t, converter, "list", "-v", "-p", strconv.Itoa(pid), "busy:::signal")
	match := regexp.MustCompile(`site +0x([0-9a-f]+)`).FindStringSubmatch(listed)
	address := int64(expect.Value(strconv.ParseUint(match[1], 16, 64))(t))
	expect.OK(t, syscall.Kill(pid, syscall.SIGSTOP)) // so that no thread meets it
	expect.Value(file.WriteAt([]byte{0xcc}, address))(t)
	_, messages, _ = tools.Command{}.Apart(converter, "trace", "-c", "--for", "20ms", "-p", strconv.Itoa(pid))
	expect.Contains(t, messages, "busy:busy:handler:signal at handler+")
	expect.Contains(t, messages, "is left alone: it holds cc")
	var now [1]byte
	expect.Value(file.ReadAt(now[:], address))(t)
	expect.Equal(t, byte(0xcc), now[0])
	expect.Value(file.WriteAt([]byte{0x90}, address))(t)
	expect.OK(t, syscall.Kill(pid, syscall.SIGCONT))
	end()
}

// The trace of a program that starts others and becomes another.
func TestFollow(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), "testdata/orders.c")
	got := trace(t, "-f", "--", "sh", "-c", fmt.Sprintf("%[1]s a; %[1]s b & wait; exec %[1]s c", program))
	expect.OK(t, got.err, "%s", got.messages)
	expect.Equal(t, []string{`shop:orders:main:placed(1, "a")`, `shop:orders:main:placed(1, "b")`, `shop:orders:main:placed(1, "c")`}, got.lines)
	if got.threads[0] == got.threads[1] {
		t.Errorf("got threads %v", got.threads)
	}
	expect.Equal(t, 0, len(trace(t, "--", "sh", "-c", filepath.Base(program)+"; "+program+" a").lines))
}

// Processes that have loaded the same file share its sites: a run has room for 16,384.
func TestManyProcesses(t *testing.T) {
	parallel(t)
	const sites, processes = 700, 25
	var source strings.Builder
	source.WriteString("#include <sdt.h>\nint main(void)\n{\n")
	for i := range sites {
		fmt.Fprintf(&source, "\tDTRACE_PROBE1(many___p%d, int, %d);\n", i, i)
	}
	source.WriteString("}\n")
	program := compile(t, gcc(), write(t, "many.c", source.String()))
	out, messages, err := tools.Command{}.Apart(converter, "trace", "-c", "-f", "--", "sh", "-c", fmt.Sprintf("for i in $(seq %d); do %s; done", processes, program))
	expect.OK(t, err, "%s", messages)
	got := counts(out)
	expect.Equal(t, sites, len(got))
	for name, n := range got {
		expect.Equal(t, processes, n, "%s", name)
	}
	expect.Equal(t, false, strings.Contains(messages, "warning"), "%s", messages)
}

// The next tracer uses what an earlier one has mapped: as many sites get breakpoints, and no more memory is mapped.
func TestNextTracer(t *testing.T) {
	parallel(t)
	if _, err := os.Stat("/usr/include/x86_64-linux-gnu/sys/sdt.h"); err != nil {
		tools.Unavailable(t, "no sys/sdt.h")
	}
	var source strings.Builder // what follows SystemTap's NOP is the distance of its jump
	source.WriteString("#include <sys/sdt.h>\n#include <stdio.h>\nstatic void hit(volatile int *x)\n{\n")
	for i := range 400 {
		fmt.Fprintf(&source, "\tSTAP_PROBE1(next, p%d, *x); *x += %#x;\n", i, 0x1234567+i*0x765432)
	}
	source.WriteString("}\nint main(void)\n{\n\tint x = 0;\n\tputs(\"ready\");\n\tfflush(stdout);\n\twhile (getchar() == 'x')\n\t\thit(&x);\n\tprintf(\"%d\\n\", x);\n}\n")
	cmd := exec.Command(compile(t, gcc(), write(t, "next.c", source.String())))
	in, out := expect.Value(cmd.StdinPipe())(t), expect.Value(cmd.StdoutPipe())(t)
	expect.OK(t, cmd.Start())
	t.Cleanup(func() { cmd.Process.Kill() })
	expect.Value(out.Read(make([]byte, 6)))(t)
	breakpoints, size := "", ""
	for i := range 4 {
		_, messages, err := tools.Command{}.Apart(converter, "trace", "-c", "--for", "20ms", "-p", strconv.Itoa(cmd.Process.Pid))
		expect.OK(t, err, "%s", messages)
		now := regexp.MustCompile(`\d+ sites? armed by breakpoints|$`).FindString(messages)
		sizeNow := regexp.MustCompile(`VmSize:.*`).FindString(string(disk.Read(t, fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))))
		if i > 0 {
			expect.Equal(t, breakpoints, now)
			expect.Equal(t, size, sizeNow)
		}
		breakpoints, size = now, sizeNow
	}
	expect.OK(t, in.Close())
	expect.OK(t, cmd.Wait())
}

// A program makes no system call for the tracer that its seccomp filter may forbid: it gets breakpoints. Root makes the calls past the filter.
func TestSeccomp(t *testing.T) {
	parallel(t)
	for _, flags := range [][]string{nil, {"-DLENIENT"}} {
		program := compile(t, gcc(), "testdata/filtered.c", flags...)
		cmd := exec.Command(program)
		out := expect.Value(cmd.StdoutPipe())(t)
		expect.OK(t, cmd.Start())
		expect.Value(out.Read(make([]byte, 6)))(t)
		got := trace(t, "-n", "60", "-p", strconv.Itoa(cmd.Process.Pid))
		expect.OK(t, got.err, "%s", got.messages)
		expect.Equal(t, 60, len(got.lines))
		for i, line := range got.lines[:len(got.lines)-1] {
			var n int
			if _, err := fmt.Sscanf(line, "filtered:filtered:main:number(%d)", &n); err == nil {
				expect.Equal(t, fmt.Sprintf("filtered:filtered:main:text(\"text %d\")", n), got.lines[i+1])
			}
			expect.Equal(t, strconv.Itoa(cmd.Process.Pid), got.threads[i])
		}
		isJumps := !strings.Contains(got.messages, "2 sites armed by breakpoints")
		if isJumps != canPassFilters(t) {
			t.Errorf("%s: got %s", flags, got.messages)
		}
		exitedWith(t, cmd.Wait(), 5)
	}
}

// canPassFilters reports whether this process may suspend the filters of others: it has CAP_SYS_ADMIN, and no filter itself.
func canPassFilters(t *testing.T) bool {
	t.Helper()
	status := string(disk.Read(t, "/proc/self/status"))
	capabilities := expect.Value(strconv.ParseUint(regexp.MustCompile(`CapEff:\s+(\w+)`).FindStringSubmatch(status)[1], 16, 64))(t)
	return capabilities&(1<<21) != 0 && regexp.MustCompile(`Seccomp:\s+0`).MatchString(status)
}

// What the memory of a filtered program holds is read before it ends; and a program that installs a filter while it is traced
// is armed anew.
func TestSeccompLater(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), "testdata/filtered.c")
	for _, command := range [][]string{{program}, {program, program}} { // the second has its filter from the beginning
		out, messages, err := tools.Command{}.Apart(converter, append([]string{"trace", "-c", "-f", "number", "--"}, command...)...)
		exitedWith(t, err, 5)
		expect.Equal(t, 400, counts(out)["number"], "%s: %s", command, messages)
		got := trace(t, append([]string{"-f", "--filter", "arg0 >= 0", "number", "--", "sh", "-c", `exec "$@" >/dev/null`, "sh"}, command...)...)
		expect.Equal(t, 400, len(got.lines), "%s: %s", command, got.messages)
	}
}

// Two processes are traced at once.
func TestTwoProcesses(t *testing.T) {
	program, want := busy(t, 2, 1500000)
	first, end1 := again(t, program, want)
	second, end2 := again(t, program, want)
	got := trace(t, "--for", "500ms", "-p", strconv.Itoa(first), "-p", strconv.Itoa(second), "signal")
	expect.OK(t, got.err, "%s", got.messages)
	processes := map[string]bool{}
	for _, thread := range got.threads {
		tgid := ""
		if status, err := os.ReadFile("/proc/" + thread + "/status"); err == nil {
			_, tgid, _ = strings.Cut(string(status), "Tgid:\t")
			tgid, _, _ = strings.Cut(tgid, "\n")
		}
		processes[tgid] = true
	}
	if !processes[strconv.Itoa(first)] || !processes[strconv.Itoa(second)] {
		t.Errorf("got events of %v, want %d and %d", processes, first, second)
	}
	end1()
	end2()
}

// The tracer is killed at one of its system calls, while it attaches to a program that none has traced before. strace kills it.
func TestKilledAtCalls(t *testing.T) {
	tools.Need(t, "strace")
	program, want := busy(t, 2, 300000)
	for i := range tools.Cases(t, 6) {
		call := []string{"ptrace", "pwrite64", "wait4"}[i%3]
		pid, end := again(t, program, want)
		cmd := exec.Command("strace", "-f", "-o", os.DevNull, "-e", "trace="+call, "-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", call, 1+i/3*11%60),
			converter, "trace", "--for", "20ms", "-p", strconv.Itoa(pid))
		cmd.Env = append(os.Environ(), "SDTCONVERT_TRACE_KEEPER=1")
		read, write, err := os.Pipe()
		expect.OK(t, err)
		cmd.ExtraFiles = []*os.File{read}
		cmd.Run()
		read.Close()
		write.Close()
		end()
	}
}
