package attach

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/tools"
)

// guarded are the files of a program whose probe is guarded.
type guarded struct{ exe, image string } // image has the probe

// guardedPrograms links the program: with each linker, and as a shared library.
func guardedPrograms(t *testing.T, c compiler) map[string]guarded {
	t.Helper()
	dir := t.TempDir()
	probe := c.compile(t, dir, "guarded.c", "-g", "-DSDT_CALLS", "-DSDT_NO_SEMAPHORES")
	tools.Must(t, converter, "--stapsdt", probe)
	main := c.compile(t, dir, "serve.c")
	link := func(name string, args ...string) string {
		out := filepath.Join(dir, name)
		tools.Must(t, c.driver(), append(args, "-o", out)...)
		return out
	}
	all := map[string]guarded{}
	for _, ld := range linkers {
		out := link(ld.Name, "-pie", "-B"+linker(t, ld), main, probe)
		all[ld.Name] = guarded{out, out}
	}
	out := link("no-pie", "-no-pie", main, probe)
	all["no-pie"] = guarded{out, out}
	library := link("libguarded.so", "-shared", probe)
	all["library"] = guarded{link("program", main, library, "-Wl,-rpath,"+dir), library}
	return all
}

// upDown is what a listing says of the program's sites: their states, and whether their
// semaphore is up. A tracer may raise it several times.
type upDown struct {
	Call, Test     string
	CallUp, TestUp bool
}

// listed reads the listing of a process, or the listing that a file has.
func listed(t *testing.T, text string) upDown {
	t.Helper()
	out, addresses := upDown{}, map[string]bool{}
	for _, p := range listjson.Probes(t, text) {
		for _, s := range p.Sites {
			if s.Semaphore == nil || s.Semaphore.Symbol != "app_guarded_semaphore" || s.Semaphore.Value == nil {
				t.Fatalf("%+v", s)
			}
			addresses[s.Semaphore.Address] = true
			state, isUp := &out.Call, &out.CallUp
			if strings.HasPrefix(s.Kind, "isenabled") {
				state, isUp = &out.Test, &out.TestUp
			}
			*state, *isUp = s.State, *s.Semaphore.Value > 0
		}
	}
	if len(addresses) != 1 {
		t.Errorf("semaphores at %v", addresses)
	}
	return out
}

func listProcess(t *testing.T, pid int) upDown {
	t.Helper()
	return listed(t, tools.Must(t, converter, "list", "--json", "--pid", strconv.Itoa(pid)))
}

var (
	down = upDown{"disabled", "disabled", false, false}
	up   = upDown{"armed", "armed", true, true}
)

// TestListUnderGdb has gdb run the listing while it has a breakpoint at the probe.
func TestListUnderGdb(t *testing.T) {
	tools.Need(t, "gdb")
	for name, g := range guardedPrograms(t, gcc) {
		t.Run(name, func(t *testing.T) {
			p := tools.Start(t, g.exe)
			p.Until(t, "ready")
			during := filepath.Join(t.TempDir(), "during.json")
			pid := strconv.Itoa(p.Process.Pid)
			tools.Must(t, "gdb", "-nx", "-batch", "-p", pid, "-ex", "set breakpoint always-inserted on", "-ex", "break -probe-stap app:guarded",
				"-ex", fmt.Sprintf("shell %s list --json --pid %s >%s", converter, pid, during))
			text := disk.Read(t, during)
			expect.Equal(t, up, listed(t, string(text)), "traced")
			expect.Equal(t, down, listProcess(t, p.Process.Pid), "after")
		})
	}
}

// TestEarlySemaphores proves the rule of that name: bpftrace raises a semaphore before the
// program starts, and the program sees it unless check says that it does not.
func TestEarlySemaphores(t *testing.T) {
	t.Parallel()
	tools.Need(t, gcc.cc.Name)
	if _, err := os.Stat("/usr/include/x86_64-linux-gnu/sys/sdt.h"); err != nil {
		tools.Unavailable(t, "no sys/sdt.h")
	}
	warned := 0
	for _, align := range []string{"2", "4096"} {
		object := gcc.compile(t, t.TempDir(), "early.c", "-DALIGN="+align)
		for _, ld := range linkers {
			exe := filepath.Join(t.TempDir(), "early")
			tools.Must(t, gcc.driver(), "-B"+linker(t, ld), "-o", exe, object)
			tools.NeedUprobes(t)
			said := tools.Must(t, converter, "check", exe)
			want := "up 8"
			if strings.Contains(said, "[early-semaphore]") {
				want = "up 0"
				warned++
			}
			out, err := tools.Try("bpftrace", "-e", fmt.Sprintf("usdt:%s:early:hit { @ = count(); }", exe), "-c", exe)
			if err != nil || !strings.Contains(out, want+"\n") {
				t.Errorf("%s, aligned to %s: want %s: %v\n%s%s", ld.Name, align, want, err, out, said)
			}
		}
	}
	if warned == 0 || warned == 2*len(linkers) {
		t.Errorf("%d warnings", warned)
	}
}
