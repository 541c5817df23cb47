package providers

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// Probes of several processes, and of libraries that come and go. A program waits until its
// probe is traced, but not for ever.
const waiting = `
#include <stdlib.h>
#include <unistd.h>
#include <sys/wait.h>
static void await(int traced)
{
	for (int i = 0; !P_GO_ENABLED() == traced; i++) {
		if (i > 3000) { printf("it waits in vain\n"); exit(1); }
		usleep(10000);
	}
}
`

// Parent and child fire, and each process of several that are there at once.
func TestFork(t *testing.T) {
	tools.NeedUprobes(t)
	p := peer{probes: "probe go(int);", source: waiting + `
int main(int n, char **v)
{
	await(1);
	for (int i = 0; i < 3; i++)
		if (fork() == 0) {
			P_GO(i);
			return !P_GO_ENABLED();
		}
	int status, failed = 0;
	while (wait(&status) > 0)
		failed += status != 0;
	P_GO(3);
	printf("%d failed\n", failed);
	return failed;
}`}
	exe := p.make(t, newBuild(t))
	end := trace(t, countEach(exe, "go"))
	expect.Equal(t, "0 failed\n", tools.Output(t, exe), "it prints")
	expect.Equal(t, "go 4", counts(end()))
}

// The test of a probe is true until the last of two tracers ends. The kernel counts the
// semaphore up once for a site, whatever traces it.
func TestMultitrace(t *testing.T) {
	tools.NeedUprobes(t)
	p := peer{probes: "probe go(int);", source: waiting + `
int main(int n, char **v)
{
	char line[8];
	await(1);
	printf("traced\n");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		P_GO(1);
		printf("fired\n");
		fflush(stdout);
	}
	await(0);
	printf("free\n");
	return 0;
}`}
	exe := p.make(t, newBuild(t))
	end := []func() string{trace(t, countEach(exe, "go")), trace(t, countEach(exe, "go"))}
	prog := tools.Start(t, exe)
	prog.Until(t, "traced")
	semaphoreBecomes(t, prog, "1")
	for left := 1; left >= 0; left-- {
		expect.Value(prog.Stdin.Write([]byte("go\n")))(t)
		prog.Until(t, "fired")
		expect.Equal(t, []string{"go 2", "go 1"}[left], counts(end[left]()))
		semaphoreBecomes(t, prog, []string{"0", "1"}[left])
	}
	prog.Stdin.Close()
	prog.Until(t, "free")
}

// semaphoreBecomes waits until the semaphore of a process has a value, as list shows it.
func semaphoreBecomes(t *testing.T, prog *tools.Program, want string) {
	t.Helper()
	out := ""
	for range 300 {
		out = tools.Output(t, converter, "list", "-v", "--pid", strconv.Itoa(prog.Process.Pid), "p:::go")
		if strings.Contains(out, "  p_go_semaphore  "+want+"\n") {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("the semaphore is not %s: %s", want, out)
}

// A library is loaded and unloaded again and again while its probe is traced.
func TestDlclose(t *testing.T) {
	tools.NeedUprobes(t)
	b := newBuild(t)
	b.write(t, "lib.c", "#include \"p.h\"\nint fire(int n) { if (!P_GO_ENABLED()) return 0; P_GO(n); return 1; }\n")
	p := peer{probes: "probe go(int);", source: `
#include <dlfcn.h>
#include <unistd.h>
int main(int n, char **v)
{
	int fired = 0;
	for (int i = 0; fired < 3 && i < 3000; i++) {
		void *lib = dlopen(v[1], RTLD_NOW);
		int (*fire)(int) = (int (*)(int))dlsym(lib, "fire");
		fired += fire(i);
		dlclose(lib);
		if (dlopen(v[1], RTLD_NOW | RTLD_NOLOAD))
			return 2;
		usleep(10000);
	}
	printf("fired %d times\n", fired);
	return fired != 3;
}`}
	exe := p.make(t, b)
	b.Must(t, "gcc", "-O2", "-fPIC", "-shared", "lib.c", "p.o", "-o", "lib.so")
	lib := filepath.Join(b.Directory, "lib.so")
	end := trace(t, countEach(lib, "go"))
	expect.Equal(t, "fired 3 times\n", tools.Output(t, exe, lib), "it prints")
	expect.Equal(t, "go 3", counts(end()))
}
