//go:build linux

package links

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// server is a running program with threads in a library that has probes.
type server struct {
	pid   string
	sites []uint64 // by its own records
}

func startServer(t *testing.T) server {
	t.Helper()
	c := compiler{machine: amd64, cc: toolchains.GCC, flags: []string{"-O2", "-g", "-fPIC"}}
	c.need(t)
	directory := t.TempDir()
	library, program := filepath.Join(directory, "libserved.so"), filepath.Join(directory, "server")
	tools.Must(t, "gcc", "-shared", "-Wl,-z,undefs", "-o", library, convert(t, c.object(t, "served.c")))
	tools.Must(t, "gcc", "-pthread", "-rdynamic", "-Wl,-rpath,"+directory, "-o", program, convert(t, c.object(t, "server.c")), library)
	p := tools.Start(t, program)
	s := server{pid: strconv.Itoa(p.Process.Pid)}
	for _, line := range p.Until(t, "ready") {
		_, at, _ := strings.Cut(line, " ")
		s.sites = append(s.sites, expect.Value(strconv.ParseUint(at, 0, 64))(t))
	}
	slices.Sort(s.sites)
	return s
}

// lineOf matches a file and a line; a column and the function that it is inlined into may follow.
var lineOf = regexp.MustCompile(`^.*?:\d+`)

// What resolve says of addresses of a process is what eu-addr2line does.
func TestResolveInProcess(t *testing.T) {
	tools.Need(t, "eu-addr2line")
	s := startServer(t)
	var stdin strings.Builder
	var want []string
	for i, site := range s.sites {
		fmt.Fprintf(&stdin, "#%d  %#x in ?? ()\n", i, site)
		out := tools.Lines(t, "eu-addr2line", "-f", "-p", s.pid, fmt.Sprintf("%#x", site))
		want = append(want, out[0]+" "+lineOf.FindString(out[1]))
	}
	cmd := exec.Command(converter, "resolve", "--pid", s.pid)
	cmd.Stdin = strings.NewReader(stdin.String())
	out := expect.Value(cmd.Output())(t)
	var got []string
	for line := range strings.Lines(string(out)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) != 6 {
			t.Fatalf("%q", line)
		}
		function, _, _ := strings.Cut(columns[4], "+")
		got = append(got, function+" "+columns[5])
	}
	expect.Equal(t, want, got)
}

// A process whose loader has not run yet holds records that are not relocated.
func TestListOfStartingProcess(t *testing.T) {
	tools.Need(t, "gcc")
	directory := t.TempDir()
	source, object, program := filepath.Join(directory, "p.c"), filepath.Join(directory, "p.o"), filepath.Join(directory, "p")
	disk.Write(t, source, "#include <unistd.h>\nchar sdt_app___go[96];\nvoid __dtrace_probe_app___go(void);\nint main(void) { __dtrace_probe_app___go(); return pause(); }\n")
	tools.Must(t, "gcc", "-O2", "-fPIE", "-c", "-o", object, source)
	tools.Must(t, converter, object)
	tools.Must(t, "gcc", "-pie", "-o", program, object)

	runtime.LockOSThread() // the thread that traces the process
	defer runtime.UnlockOSThread()
	cmd := exec.Command(program)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	expect.OK(t, cmd.Start())
	defer cmd.Wait()
	defer cmd.Process.Kill()
	var status syscall.WaitStatus
	expect.Value(syscall.Wait4(cmd.Process.Pid, &status, 0, nil))(t)
	if !status.Stopped() {
		t.Fatalf("the process is not stopped: %v", status)
	}
	list := exec.Command(converter, "list", "-v", "--pid", strconv.Itoa(cmd.Process.Pid))
	var out strings.Builder
	list.Stdout, list.Stderr = &out, &out
	expect.OK(t, list.Start())
	time.Sleep(50 * time.Millisecond)
	expect.OK(t, syscall.PtraceDetach(cmd.Process.Pid))
	if err := list.Wait(); err != nil || !strings.Contains(out.String(), "main+") || strings.Contains(out.String(), "not in code") {
		t.Errorf("%v\n%s", err, &out)
	}
}
