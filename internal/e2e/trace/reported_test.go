package trace

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// Hits of a library that is loaded later are seen from the first one on, its constructor's too; and so is a program that the dynamic linker is
// asked to start.
func TestLoading(t *testing.T) {
	parallel(t)
	plugin := compile(t, gcc(), write(t, "plug.c", `#include <sdt.h>
__attribute__((constructor)) static void begin(void) { DTRACE_PROBE(plug___constructor); }
void plug(int i) { DTRACE_PROBE1(plug___call, int, i); }
`), "-shared", "-fPIC")
	host := compile(t, gcc(), write(t, "host.c", `#include <dlfcn.h>
int main(int argc, char **argv) {
	for (int times = 0; times < 3; times++) {
		void *h = dlopen(argv[1], RTLD_NOW);
		if (!h) return 9;
		void (*f)(int) = (void (*)(int))dlsym(h, "plug");
		for (int i = 0; i < 5; i++) f(i);
		dlclose(h);
	}
	return 0;
}
`))
	got := tools.Command{}.Result(t, converter, "trace", "-c", "--require", "plug:::call", "--", host, plugin)
	expect.Equal(t, 0, got.Status, "%s", got.Stderr)
	expect.Equal(t, 15, counts(got.Stdout)["call"], "%s", got.Stdout)
	expect.Equal(t, 3, counts(got.Stdout)["constructor"], "%s", got.Stdout)

	linked := compile(t, gcc(), write(t, "linked.c", `#include <sdt.h>
void plug(int);
int main(void) { for (int i = 0; i < 40; i++) { DTRACE_PROBE1(linked___tick, int, i); plug(i); } return 0; }
`), plugin)
	loader := regexp.MustCompile(`interpreter: (.*)\]`).FindStringSubmatch(tools.Output(t, "readelf", "-lW", linked))[1]
	for _, command := range [][]string{{linked}, {loader, linked}} {
		got := tools.Command{}.Result(t, converter, append([]string{"trace", "-c", "--"}, command...)...)
		expect.Equal(t, 0, got.Status, "%s", got.Stderr)
		for name, want := range map[string]int{"tick": 40, "call": 40, "constructor": 1} {
			expect.Equal(t, want, counts(got.Stdout)[name], "%s: %s: %s%s", command, name, got.Stdout, got.Stderr)
		}
	}
}

// A tracer that attaches again and again takes no increment from a counter that restartable sequences protect.
func TestRestartableSequences(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), "testdata/rseq.c")
	running := exec.Command(program)
	out := &strings.Builder{}
	running.Stdout = out
	expect.OK(t, running.Start())
	done := make(chan error)
	go func() { done <- running.Wait() }()
	for times := 0; ; times++ {
		select {
		case err := <-done:
			if running.ProcessState.ExitCode() == 77 {
				tools.Unavailable(t, "no restartable sequences here")
				return
			}
			expect.OK(t, err, "%d times attached: %s", times, out)
			return
		default:
		}
		exec.Command(converter, "trace", "-c", "-n", "1", "--for", "1s", "-p", strconv.Itoa(running.Process.Pid)).Run()
	}
}

// System calls that a program handles itself are its own, whether it is started or attached to.
func TestUserDispatch(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), "testdata/dispatch.c")
	got := tools.Command{}.Result(t, program)
	if got.Status == 77 {
		tools.Unavailable(t, "no dispatch of system calls here")
		return
	}
	expect.Equal(t, 0, got.Status, "untraced: %s", got.Stdout)
	for _, flags := range [][]string{{}, {"--breakpoints"}} {
		running := exec.Command(program)
		expect.OK(t, running.Start())
		time.Sleep(300 * time.Millisecond)
		traced := trace(t, append(flags, "-n", "2", "-p", strconv.Itoa(running.Process.Pid))...)
		expect.OK(t, traced.err, "%s", traced.messages)
		expect.OK(t, running.Wait(), "%s: %s", flags, traced.messages)
	}
	expect.OK(t, exec.Command(converter, "trace", "--filter", "arg0 < 5", "--", program).Run())
}

// A process that runs in another's memory, and is no thread of it, goes on at breakpoints, too.
func TestSharedMemoryOfProcesses(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), write(t, "shares.c", `#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <sdt.h>
static int f(void *x) { for (int i = 0; i < 1200; i++) { DTRACE_PROBE1(cv___tick, int, i); usleep(1000); } return 7; }
int main(void) {
	int s;
	char *stack = malloc(1 << 16);
	pid_t p = clone(f, stack + (1 << 16), CLONE_VM | SIGCHLD, 0);
	puts("ready"); fflush(stdout);
	waitpid(p, &s, 0);
	return WIFEXITED(s) ? WEXITSTATUS(s) : 99;
}
`))
	for _, flags := range [][]string{{}, {"--breakpoints"}} {
		running := exec.Command(program)
		out := expect.Value(running.StdoutPipe())(t)
		expect.OK(t, running.Start())
		out.Read(make([]byte, 6))
		got := trace(t, append(flags, "-n", "50", "-p", strconv.Itoa(running.Process.Pid))...)
		expect.OK(t, got.err, "%s", got.messages)
		expect.Equal(t, 50, len(got.lines))
		exitedWith(t, running.Wait(), 7)
	}
}

// Once its tracer was killed, a program reads no argument for it: also one that is not there does no harm.
func TestKilledBeforeFaults(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), write(t, "late.c", `#include <stdio.h>
#include <time.h>
#include <sdt.h>
int main(void) {
	time_t end = time(0) + 3;
	puts("ready"); fflush(stdout);
	for (long i = 0; time(0) < end; i++) {
		const char *text = time(0) < end - 1 ? "text" : (const char *)0x123456000;
		DTRACE_PROBE2(late___hit, long, i, char *, text);
	}
	return 5;
}
`))
	for range 3 {
		running := exec.Command(program)
		out := expect.Value(running.StdoutPipe())(t)
		expect.OK(t, running.Start())
		out.Read(make([]byte, 6))
		killTracer(t, 300*time.Millisecond, "trace", "-p", strconv.Itoa(running.Process.Pid))
		exitedWith(t, running.Wait(), 5)
	}
}

// Children that are killed while they fork and make threads leave nothing for which the tracer would wait.
func TestForkStorm(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), write(t, "storm.c", `#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <sdt.h>
static void *f(void *x) { DTRACE_PROBE(storm___thread); return x; }
static void child(void) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) {
		pthread_t t;
		if (!pthread_create(&t, 0, f, 0)) pthread_join(t, 0);
		pid_t p = fork();
		if (!p) { DTRACE_PROBE(storm___child); _exit(0); }
		if (p > 0) waitpid(p, 0, 0);
	}
}
int main(void) {
	time_t end = time(0) + 2;
	for (int i = 0; time(0) < end; i++) {
		pid_t p = fork();
		if (!p) child();
		usleep(500 + i * 137 % 4000);
		kill(p, SIGKILL);
		waitpid(p, 0, 0);
	}
	return 6;
}
`))
	for _, flags := range [][]string{{"-f", "-c"}, {"-f", "-c", "--breakpoints"}} {
		traced := exec.Command(converter, append(append([]string{"trace"}, flags...), "--", program)...)
		expect.OK(t, traced.Start())
		alarm := time.AfterFunc(60*time.Second, func() { traced.Process.Kill() })
		exitedWith(t, traced.Wait(), 6)
		alarm.Stop()
	}
}

// A uprobe that takes over a breakpoint is seen and said; when it has gone, the site is armed again.
func TestUprobeBeside(t *testing.T) {
	parallel(t)
	tools.NeedUprobes(t)
	tools.Need(t, "bpftrace")
	program := compile(t, gcc(), write(t, "beside.c", `#include <stdio.h>
#include <unistd.h>
#include <sdt.h>
__attribute__((noinline)) void tick(int i) { DTRACE_PROBE1(beside___tick, int, i); }
int main(void) { puts("ready"); fflush(stdout); for (int i = 0; i < 8000; i++) { tick(i); usleep(1000); } return 0; }
`))
	running := exec.Command(program)
	out := expect.Value(running.StdoutPipe())(t)
	expect.OK(t, running.Start())
	defer running.Process.Kill()
	out.Read(make([]byte, 6))
	pid := strconv.Itoa(running.Process.Pid)
	tracer := exec.Command(converter, "trace", "--breakpoints", "-c", "-p", pid)
	var messages strings.Builder
	tracer.Stderr = &messages
	expect.OK(t, tracer.Start())
	time.Sleep(time.Second)
	tools.Must(t, "bpftrace", "-p", pid, "-e", "usdt:"+program+":beside:tick { @ = count(); } interval:s:1 { exit(); }")
	time.Sleep(3 * time.Second)
	expect.OK(t, tracer.Process.Signal(os.Interrupt))
	expect.OK(t, tracer.Wait(), "%s", &messages)
	expect.Contains(t, messages.String(), "another tracer, such as a uprobe of bpftrace or perf")
	expect.Contains(t, messages.String(), "it is armed again")
}

// A process that is followed is traced with the children that it has already, and theirs; without -f it is traced alone.
func TestChildrenThatAreThere(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), write(t, "server.c", `#include <stdio.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>
#include <sdt.h>
static void serve(const char *who) {
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;) { DTRACE_PROBE1(server___query, const char *, who); usleep(1000); }
}
int main(void) {
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!fork()) serve("grandchild");
		serve("child");
	}
	puts("ready"); fflush(stdout);
	for (;;) pause();
}
`))
	running := exec.Command(program)
	out := expect.Value(running.StdoutPipe())(t)
	expect.OK(t, running.Start())
	defer running.Wait()
	defer running.Process.Kill()
	out.Read(make([]byte, 6))
	time.Sleep(100 * time.Millisecond)
	pid := strconv.Itoa(running.Process.Pid)
	for _, flags := range [][]string{{}, {"--breakpoints"}} {
		for _, who := range []string{"child", "grandchild"} {
			got := trace(t, append(flags, "-f", "-n", "20", "--filter", `arg0 == "`+who+`"`, "-p", pid)...)
			expect.OK(t, got.err, "%s", got.messages)
			expect.Equal(t, 20, len(got.lines))
		}
	}
	got := trace(t, "--for", "100ms", "-p", pid)
	expect.OK(t, got.err, "%s", got.messages)
	expect.Equal(t, 0, len(got.lines))
}

// Sites at which no jump fits are named before the program meets them, and can be left alone.
func TestNoBreakpoints(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), write(t, "short.c", `
__attribute__((noinline)) int f(int i) {
	__asm__ volatile ("990:\tnop\n\t.byte 0xeb, 2, 0, 0\n\t.pushsection .note.stapsdt,\"?\",\"note\"\n\t.balign 4\n\t.4byte 992f-991f,994f-993f,3\n"
		"991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n993:\t.8byte 990b,0,0\n\t.asciz \"short\"\n\t.asciz \"site\"\n\t.asciz \"-4@%0\"\n994:\t.balign 4\n\t.popsection" :: "r" (i));
	return i;
}
int main(void) { for (int i = 0; i < 3; i++) f(i); return 0; }
`), "-no-pie")
	got := tools.Command{}.Result(t, converter, "trace", "-c", "--", program)
	expect.Equal(t, 0, got.Status, "%s", got.Stderr)
	expect.Equal(t, 3, counts(got.Stdout)["site"])
	expect.Contains(t, got.Stderr, "the program stops at each hit of short:short:f:site: no jump fits there") // it would land 747 bytes on
	got = tools.Command{}.Result(t, converter, "trace", "-c", "--no-breakpoints", "--allow-none", "--", program)
	expect.Equal(t, 0, got.Status, "%s", got.Stderr)
	expect.Equal(t, 0, counts(got.Stdout)["site"])
	expect.Contains(t, got.Stderr, "is left alone: no jump fits there")
}

// One process may be named twice; a process of which nothing can be armed is status 1.
func TestNothingToSee(t *testing.T) {
	parallel(t)
	program := compile(t, gcc(), write(t, "see.c", `#include <unistd.h>
#include <stdio.h>
#include <sdt.h>
int main(void) { puts("ready"); fflush(stdout); for (int i = 0; i < 1500; i++) { DTRACE_PROBE1(see___tick, int, i); usleep(1000); } return 0; }
`))
	start := func() *exec.Cmd {
		running := exec.Command(program)
		out := expect.Value(running.StdoutPipe())(t)
		expect.OK(t, running.Start())
		out.Read(make([]byte, 6))
		return running
	}
	running := start()
	pid := strconv.Itoa(running.Process.Pid)
	got := trace(t, "-n", "2", "-p", pid, "-p", pid)
	expect.OK(t, got.err, "%s", got.messages)
	expect.OK(t, running.Wait())

	running = start()
	pid = strconv.Itoa(running.Process.Pid)
	expect.OK(t, running.Process.Signal(syscall.SIGSTOP)) // it dies at the byte
	site := regexp.MustCompile(`0x([0-9a-f]+)`).FindStringSubmatch(tools.Output(t, converter, "list", "-v", "-p", pid))
	if site == nil {
		t.Fatal("list -v shows no address")
	}
	memory := expect.Value(os.OpenFile(filepath.Join("/proc", pid, "mem"), os.O_RDWR, 0))(t)
	defer memory.Close()
	expect.Value(memory.WriteAt([]byte{0xf4}, expect.Value(strconv.ParseInt(site[1], 16, 64))(t)))(t)
	result := tools.Command{}.Result(t, converter, "trace", "-n", "2", "-p", pid)
	expect.Equal(t, 1, result.Status)
	expect.Contains(t, result.Stderr, "is left alone")
	expect.Contains(t, result.Stderr, "no site could be armed")
	running.Process.Kill()
	running.Wait()
}

// A program that attacks its tracer changes no file, takes no memory of the tracer's beyond a bound, and reaches no other process. The tracer
// ends with a status and lines that a terminal shows as text.
func TestHostileTwin(t *testing.T) {
	needPtrace(t)
	program := compile(t, gcc(), "testdata/twin.c")
	directory := filepath.Dir(program)
	victim := filepath.Join(t.TempDir(), "victim")
	content := []byte("a file of somebody else, 33 bytes")
	expect.OK(t, os.WriteFile(victim, content, 0o644))
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		attributes.Credential = &syscall.Credential{Uid: 65534, Gid: 65534}
		openTo(t, directory, victim)
	}
	bystander := exec.Command("sleep", "1000")
	expect.OK(t, bystander.Start())
	defer bystander.Process.Kill()
	modes := [][]string{{}, {"-c"}, {"-f"}, {"--breakpoints"}, {"-f", "-c"}, {"--hist", "arg0"}, {"--between", "hit,hit"}, {"--filter", `arg0 > 5 && arg1 != "x"`}}
	for run := range tools.Cases(t, 6) {
		args := append(append([]string{"trace"}, modes[run%len(modes)]...), "--for", []string{"100ms", "400ms", "2s"}[run%3])
		twin := exec.Command(program, victim, strconv.Itoa(run))
		twin.SysProcAttr = attributes
		out := expect.Value(twin.StdoutPipe())(t)
		expect.OK(t, twin.Start())
		out.Read(make([]byte, 6))
		for range 3 {
			tracer := exec.Command(converter, append(args, "-p", strconv.Itoa(twin.Process.Pid))...)
			var shown, messages bytes.Buffer
			tracer.Stdout, tracer.Stderr = &shown, &messages
			expect.OK(t, tracer.Start())
			alarm := time.AfterFunc(60*time.Second, func() { tracer.Process.Signal(syscall.SIGQUIT) })
			tracer.Wait()
			what := fmt.Sprintf("run %d, %s", run, args)
			if !alarm.Stop() {
				t.Fatalf("%s: hangs: %s", what, messages.String())
			}
			if code := tracer.ProcessState.ExitCode(); code != 0 && code != 1 {
				t.Fatalf("%s: %v: %s", what, tracer.ProcessState, messages.String())
			}
			if code := tracer.ProcessState.ExitCode(); code == 1 && messages.Len() == 0 {
				t.Errorf("%s: status 1 without a word", what)
			}
			if kilobytes := tracer.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; kilobytes > 400<<10 {
				t.Errorf("%s: the tracer took %d MiB", what, kilobytes>>10)
			}
			for _, b := range append(shown.Bytes(), messages.Bytes()...) {
				if b != '\n' && (b < ' ' || b > '~') {
					t.Fatalf("%s: byte %#x in the output", what, b)
				}
			}
			if strings.Contains(messages.String(), "goroutine ") {
				t.Fatalf("%s: %s", what, messages.String())
			}
		}
		syscall.Kill(-twin.Process.Pid, syscall.SIGKILL)
		twin.Wait()
		expect.Equal(t, content, expect.Value(os.ReadFile(victim))(t), "run %d: the file of somebody else", run)
	}
	expect.OK(t, bystander.Process.Signal(syscall.Signal(0)))
	expect.Contains(t, string(expect.Value(os.ReadFile(fmt.Sprintf("/proc/%d/status", bystander.Process.Pid)))(t)), "State:\tS")
}

// openTo lets other users reach files.
func openTo(t *testing.T, paths ...string) {
	t.Helper()
	for _, path := range paths {
		for ; path != filepath.Dir(path) && strings.HasPrefix(path, os.TempDir()); path = filepath.Dir(path) {
			info := expect.Value(os.Stat(path))(t)
			if info.IsDir() {
				expect.OK(t, os.Chmod(path, info.Mode()|0o055))
			}
		}
	}
}
