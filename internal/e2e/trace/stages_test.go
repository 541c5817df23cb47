package trace

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// A site has one kind at each stage, a call and a NOP of a header the same, and a state that is true.
func TestStages(t *testing.T) {
	parallel(t)
	source := write(t, "stage.c", `#include <stdio.h>
#include <unistd.h>
#include <sdt.h>
__attribute__((noinline)) void stage(int i) { DTRACE_PROBE1(shop___stage, int, i); }
int main(void) { puts("ready"); fflush(stdout); for (int i = 0; i < 3000; i++) { stage(i); usleep(1000); } return 0; }
`)
	for _, c := range []struct{ flag, kind, rule string }{
		{"-O2", "probe", "not-converted"}, {"-DSDT_SHORT_NOPS", "probe", "not-converted"}, {"-DSDT_CALLS", "tail", "live-call"},
		{"-DSDT_CALLS -fno-optimize-sibling-calls", "probe", "live-call"},
	} {
		directory := t.TempDir()
		object, program := filepath.Join(directory, "stage.o"), filepath.Join(directory, "stage")
		tools.Must(t, "sh", "-c", fmt.Sprintf(`gcc -O2 %s -I"$0" -c -o "$1" "$2"`, c.flag), include, object, source)
		checkStage := func(state string, command ...string) {
			t.Helper()
			found := regexp.MustCompile(` stage\+0x\w+ +(\S+) +(\S+)`).FindStringSubmatch(tools.Output(t, converter, command...))
			if found == nil || found[1] != c.kind || found[2] != state {
				t.Errorf("%s: %s: got %q, want %s %s", c.flag, command, found, c.kind, state)
			}
		}
		checkStage("unconverted", "inspect", object)
		got := tools.Command{}.Result(t, converter, "check", object)
		expect.Contains(t, got.Stdout, "["+c.rule+"]\n", "%s", c.flag)
		tools.Must(t, converter, object)
		checkStage("disabled", "inspect", object)
		checkStage("disabled", "list", "-v", object)
		tools.Must(t, "gcc", "-o", program, object)
		checkStage("disabled", "list", "-v", program)
		for _, flags := range [][]string{nil, {"--breakpoints"}} {
			running := exec.Command(program)
			out := expect.Value(running.StdoutPipe())(t)
			expect.OK(t, running.Start())
			out.Read(make([]byte, 6))
			pid := fmt.Sprint(running.Process.Pid)
			checkStage("disabled", "list", "-v", "-p", pid)
			tracer := exec.Command(converter, append(append([]string{"trace"}, flags...), "-p", pid)...)
			hits := expect.Value(tracer.StdoutPipe())(t)
			expect.OK(t, tracer.Start())
			hits.Read(make([]byte, 1))
			checkStage("armed", "list", "-v", "-p", pid)
			hits.Close()
			tracer.Process.Signal(os.Interrupt)
			tracer.Wait()
			running.Process.Kill()
			running.Wait()
		}
	}
}

// hard are programs whose threads, children and libraries come and go at moments that are hard for a tracer, with what they print and their
// exit statuses, and how often a probe is hit.
var hard = []struct {
	name, source string
	flags        []string
	status       int
	want         string // in the output
}{
	{"the first thread ends", `
static void *f(void *x) { for (int i = 0; i < 600; i++) { DTRACE_PROBE1(a___hit, int, i); usleep(1000); } puts("end"); fflush(stdout); _exit(3); }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); pthread_exit(0); }`, []string{"-c", "--for", "300ms"}, 3, `(?m)^end$`},
	{"the first thread has ended, and a library is loaded", `
static void *f(void *x) { usleep(300000); void *l = dlopen(getenv("LIBRARY"), RTLD_NOW); usleep(200000); ((void (*)(int))dlsym(l, "f"))(1); exit(3); }
int main(void) { pthread_t t; DTRACE_PROBE1(a___hit, int, 1); pthread_create(&t, 0, f, 0); pthread_exit(0); }`, []string{"-c"}, 3, `(?m)^ +1 lib:[^:]*:f:plain$`},
	{"a thread waits for its child of vfork", `
static void *f(void *x) { pid_t p = vfork(); if (!p) { sleep(1); _exit(0); } waitpid(p, 0, 0); puts("waited"); return x; }
int main(void) { pthread_t t; pthread_create(&t, 0, f, 0); for (int i = 0; i < 100; i++) { DTRACE_PROBE1(a___hit, int, i); usleep(1000); } pthread_join(t, 0); return 4; }`,
		[]string{"-c", "--for", "300ms"}, 4, `(?m)^waited$`},
	{"a constructor forks", `
__attribute__((constructor)) static void c(void) { int s; pid_t p = fork(); if (p > 0) { waitpid(p, &s, 0); printf("child %d\n", s); fflush(stdout); } else _exit(0); }
int main(void) { DTRACE_PROBE1(a___hit, int, 1); return 0; }`, []string{"-c"}, 0, `(?m)^child 0$`},
	{"spawned programs", `
int main(void) { for (int i = 0; i < 10; i++) { DTRACE_PROBE1(a___hit, int, i); if (system("true")) return 9; } return 0; }`, []string{"-c"}, 0, `(?m)^ +10 a:[^:]*:main:hit$`},
	{"libraries are unloaded", `
int main(void) {
	for (int i = 0; i < 5; i++) {
		void *l = dlopen(getenv("LIBRARY"), RTLD_NOW);
		void (*f)(int) = (void (*)(int))dlsym(l, "f");
		usleep(200000);
		for (int n = 0; n < 10; n++)
			f(n);
		dlclose(l);
	}
	return 0;
}`, []string{"-c"}, 0, `(?m)^ +50 lib:[^:]*:f:guarded$`},
}

func TestHardMoments(t *testing.T) {
	needPtrace(t)
	const head = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <pthread.h>\n#include <stdio.h>\n#include <stdlib.h>\n#include <sys/wait.h>\n#include <unistd.h>\n#include <sdt.h>\n"
	source := write(t, "lib.c", head+"void f(int i) { if (DTRACE_PROBE_ENABLED(lib___guarded)) DTRACE_PROBE1(lib___guarded, int, i); DTRACE_PROBE1(lib___plain, int, i); }\n")
	library := compile(t, gcc(), source, "-shared", "-fPIC")
	for _, c := range hard {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			program := compile(t, gcc(), write(t, "app.c", head+c.source), "-pthread", "-ldl")
			words := append(append([]string{"LIBRARY=" + library, converter, "trace"}, c.flags...), "--", program)
			got := tools.Command{}.Result(t, "env", words...)
			expect.Equal(t, c.status, got.Status, "%s%s", got.Stdout, got.Stderr)
			if !regexp.MustCompile(c.want).MatchString(got.Stdout) {
				t.Errorf("no %s in:\n%s%s", c.want, got.Stdout, got.Stderr)
			}
		})
	}
}

// terminal is a shell on a terminal of its own.
type terminal struct {
	*os.File
	shell int // its process ID
	mutex sync.Mutex
	out   strings.Builder
	seen  int
}

func openTerminal(t *testing.T) *terminal {
	t.Helper()
	tools.Need(t, "bash")
	master := expect.Value(os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0))(t)
	expect.OK(t, unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0))
	number := expect.Value(unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN))(t)
	slave := expect.Value(os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	defer slave.Close()
	shell := exec.Command("bash", "--norc", "--noediting", "-i")
	shell.Env = append(os.Environ(), "PS1=", "TERM=dumb", "PAGER=")
	shell.Stdin, shell.Stdout, shell.Stderr = slave, slave, slave
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	expect.OK(t, shell.Start())
	term := &terminal{File: master, shell: shell.Process.Pid}
	go func() {
		buffer := make([]byte, 4096)
		for {
			n, err := master.Read(buffer)
			term.mutex.Lock()
			term.out.Write(buffer[:n])
			term.mutex.Unlock()
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		shell.Process.Kill()
		shell.Wait()
		master.Close()
	})
	return term
}

// send types a text, and waits until the terminal shows another.
func (term *terminal) send(t *testing.T, text, want string) {
	t.Helper()
	expect.Value(term.WriteString(text))(t)
	expect.Soon(t, func() bool {
		term.mutex.Lock()
		defer term.mutex.Unlock()
		at := strings.Index(term.out.String()[term.seen:], want)
		if at >= 0 {
			term.seen += at + len(want)
		}
		return at >= 0
	})
}

// waitStopped waits until all processes of the shell's jobs have stopped. The shell says so when its child has; one that is late still reads what is
// typed next.
func (term *terminal) waitStopped(t *testing.T) {
	t.Helper()
	expect.Soon(t, func() bool {
		paths := expect.Value(filepath.Glob("/proc/[0-9]*/stat"))(t)
		return !slices.ContainsFunc(paths, func(path string) bool {
			text, _ := os.ReadFile(path)
			fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // state, parent, group, session
			return len(fields) > 3 && fields[3] == strconv.Itoa(term.shell) && fields[2] != fields[3] && !strings.Contains("Tt", fields[0])
		})
	})
}

// A traced program has the terminal: it reads lines, is stopped and continued by the shell, and gets Ctrl-C. So has a pager.
func TestTerminal(t *testing.T) {
	parallel(t)
	for _, flags := range []string{"-c", "-c -f"} {
		term := openTerminal(t)
		traced := converter + " trace " + flags + " -- "
		term.send(t, traced+"sed -u s/x/yy/\n", traced)
		term.send(t, "axb\n", "ayyb")
		term.send(t, "\x1a", "Stopped")
		term.waitStopped(t)
		term.send(t, "echo in the $((1 + 1))nd line\n", "in the 2nd line")
		term.send(t, "fg\n", "sed")
		term.send(t, "cxd\n", "cyyd")
		term.send(t, "\x04", " hits, 0 dropped")
		term.send(t, "echo status $?\n", "status 0")
		// The inner shell says it, as a Ctrl-C between a shell's fork and the child's exec is lost without a tracer, too.
		term.send(t, traced+`sh -c 'sh -c "echo begun; exec sleep 100"; true'`+"\n", "\nbegun")
		term.send(t, "\x03", " hits, 0 dropped")
		term.send(t, "echo status $?\n", "status 130")
		term.send(t, "seq 100000 100500 | "+traced+"sh -c 'read x </dev/tty; head -n 3'\n", "seq")
		term.send(t, "\n", "100002")
		term.send(t, "echo status $?\n", "status 0")
	}
}
