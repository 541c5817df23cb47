package trace

import (
	"regexp"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

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
