//go:build unix

package compile

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/tools"
)

// slow is a compiler that writes an object, says so, and waits.
const slow = `#!/bin/sh
echo "compiling $2"
echo unfinished >"$4"
echo $$ >started
exec sleep 60
`

// A signal ends the compiler and, in the same way, the wrapper. What the compiler has left
// stays, as it does without the wrapper.
func TestSignals(t *testing.T) {
	t.Parallel()
	tools.Heed(t, syscall.SIGHUP, syscall.SIGINT)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1} {
		b := newBuild(t)
		b.write("slow", slow)
		cmd := exec.Command(converter, "cc", "--", "./slow", "-c", "probe.c", "-o", "probe.o")
		var out bytes.Buffer
		cmd.Dir, cmd.Stdout, cmd.Stderr = b.Directory, &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for end := time.Now().Add(10 * time.Second); !b.exists("started") && time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
		}
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		tools.Died(t, cmd.Wait(), sig)
		if out.String() != "compiling probe.c\n" || b.read("probe.o") != "unfinished\n" {
			t.Errorf("%v: says %q, and leaves %q", sig, out.String(), b.read("probe.o"))
		}
	}
}

// The wrapper dies as the compiler does, with an object to write or without.
func TestDeaths(t *testing.T) {
	t.Parallel()
	b := newBuild(t)
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGSEGV, syscall.SIGTERM} {
		for _, args := range [][]string{{"-c", "probe.c"}, {"probe.o"}} {
			b.write("dies", "#!/bin/sh\nkill -"+map[syscall.Signal]string{syscall.SIGKILL: "KILL", syscall.SIGSEGV: "SEGV", syscall.SIGTERM: "TERM"}[sig]+" $$\n")
			cmd := exec.Command(converter, append([]string{"cc", "--", "./dies"}, args...)...)
			cmd.Dir = b.Directory
			tools.Died(t, cmd.Run(), sig)
		}
	}
}

// The compiler has the arguments, the name, the environment and the open files that it would
// have without the wrapper, and its messages come at once.
func TestCompilerSeesNoDifference(t *testing.T) {
	t.Parallel()
	b := newBuild(t)
	b.write("tells", `#!/bin/sh
printf '<%s>' "$0" "$@"; echo
env | grep -v ^_= | sort
readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2
cat <&5
cat
exit 7
`)
	for _, args := range [][]string{{"-c", "probe.c", "", "a b", "-o", "probe.o", "@none"}, {"-E", "probe.c"}} {
		run := func(words ...string) (string, int) {
			words = append(words, args...)
			out, err := os.Create(b.path("out"))
			if err != nil {
				t.Fatal(err)
			}
			defer out.Close()
			five, err := os.Open(b.path("none.c"))
			if err != nil {
				t.Fatal(err)
			}
			defer five.Close()
			cmd := exec.Command(words[0], words[1:]...)
			cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = b.Directory, five, out, out, []*os.File{nil, nil, five}
			cmd.Run()
			return b.read("out"), cmd.ProcessState.ExitCode()
		}
		alone, status := run("./tells")
		through, same := run(converter, "cc", "--", "./tells")
		if through != alone || status != 7 || same != 7 {
			t.Errorf("%q: exit statuses %d and %d, prints\n%s\nand alone\n%s", args, same, status, through, alone)
		}
		if off, _ := run("env", "SDTCONVERT=off", launcher, "./tells"); strings.ReplaceAll(off, "SDTCONVERT=off\n", "") != alone {
			t.Errorf("%q: off: %s", args, off)
		}
	}
}

// make deletes an object that it was interrupted with; what stops a make without mercy
// leaves none that is not converted.
func TestRefusalLeavesNoObject(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc", "make")
	b := newBuild(t)
	b.write("Makefile", "CC = "+converter+" cc -- gcc\nall: probe.o refused.o none.o\n")
	for range 2 {
		b.remove("probe.o")
		out, err := b.Try("make", "-k")
		if err == nil || !strings.Contains(out, "sdtconvert: refused.o: .data") || b.exists("refused.o") || !b.exists("probe.o") || !b.exists("none.o") {
			t.Errorf("%v, %s", err, out)
		}
	}
}
