//go:build unix

package compile

import (
	"bytes"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"sdtconvert/internal/testkit/expect"
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
		expect.OK(t, cmd.Start())
		expect.Soon(t, func() bool { return b.exists("started") }, "the compiler starts")
		expect.OK(t, cmd.Process.Signal(sig))
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
			out := expect.Value(os.Create(b.path("out")))(t)
			defer out.Close()
			five := expect.Value(os.Open(b.path("none.c")))(t)
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

// A complete object of a compiler that dies is converted.
func TestObjectOfDyingCompiler(t *testing.T) {
	b := parallelBuild(t)
	b.write("dies", "#!/bin/sh\ngcc -c probe.c\nkill -TERM $$\n")
	cmd := exec.Command(converter, "cc", "--", "./dies", "-c", "probe.c", "none.c")
	cmd.Dir = b.Directory
	tools.Died(t, cmd.Run(), syscall.SIGTERM)
	b.same("probe.o", b.converted("probe.c", []string{"gcc"}))
}

// An object of a moment ago stays as it is if the compiler does not write it.
func TestObjectsThatAreNotWritten(t *testing.T) {
	b := parallelBuild(t)
	for _, args := range [][]string{
		{"-c", "-Dprobe=(", "probe.c"}, {"-fsyntax-only", "-c", "probe.c"}, {"-###", "-c", "probe.c"}, {"-c", "probe.c", "none.c", "-o", "probe.o"},
		{"-c", "none.c", "probe.o", "refused.o"},
	} {
		b.must("gcc", "-c", "probe.c", "refused.c")
		object, refused := b.read("probe.o"), b.read("refused.o")
		b.Try(converter, append([]string{"cc", "--", "gcc"}, args...)...)
		if b.read("probe.o") != object || b.read("refused.o") != refused {
			t.Errorf("%q: an object has changed", args)
		}
	}
}

// What the compiler writes to a stream, which a name leads to, stays as it is, and so does
// the name.
func TestStreams(t *testing.T) {
	t.Parallel()
	tools.Need(t, "gcc")
	if _, err := os.Stat("/proc/self/fd"); err != nil {
		t.Skip("the system has no names of streams")
	}
	b := newBuild(t)
	b.write("streams", "#!/bin/sh\ncat \"$2\"\n")
	b.must("gcc", "-c", "probe.c", "refused.c")
	b.must("ln", "-s", "/proc/self/fd/1", "link")
	b.must("ln", "-s", "link", "second")
	for _, source := range []string{"probe.o", "refused.o"} {
		for _, name := range []string{"/proc/self/fd/1", "link", "second"} {
			b.must("sh", "-c", converter+" cc -- ./streams -c "+source+" -o "+name+" >out; echo more >>out")
			if b.read("out") != b.read(source)+"more\n" || !b.exists("link") || !b.exists("second") {
				t.Errorf("%s to %s is changed", source, name)
			}
		}
	}
}

// A refusal removes the object, and not a symbolic link to it.
func TestRefusalBehindLink(t *testing.T) {
	b := parallelBuild(t)
	b.write("writes", "#!/bin/sh\ngcc -c $2 -o new.o\ncat new.o >$4\nrm new.o\n")
	b.must("mkdir", "directory")
	b.must("ln", "-s", "sub/../real.o", "link.o") // sub is elsewhere
	b.remove("sub")
	b.must("mkdir", "directory/sub")
	b.must("ln", "-s", "directory/sub", "sub")
	if out, err := b.Try(converter, "cc", "--", "./writes", "-c", "refused.c", "-o", "link.o"); err == nil || b.exists("directory/real.o") || !b.exists("link.o") {
		t.Errorf("%v, %s", err, out)
	}
	b.must(converter, "cc", "--", "./writes", "-c", "probe.c", "-o", "link.o")
	b.same("directory/real.o", b.converted("probe.c", []string{"gcc"}))
}

// make deletes an object that it was interrupted with; what stops a make without mercy
// leaves none that is not converted.
func TestRefusalLeavesNoObject(t *testing.T) {
	b := parallelBuild(t, "make")
	b.write("Makefile", "CC = "+converter+" cc -- gcc\nall: probe.o refused.o none.o\n")
	for range 2 {
		b.remove("probe.o")
		out, err := b.Try("make", "-k")
		if err == nil || !strings.Contains(out, "sdtconvert: refused.o: .data") || b.exists("refused.o") || !b.exists("probe.o") || !b.exists("none.o") {
			t.Errorf("%v, %s", err, out)
		}
	}
}
