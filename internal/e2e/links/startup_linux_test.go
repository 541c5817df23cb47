package links

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

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
