//go:build linux

package image_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// process is a program that waits.
type process struct {
	*tools.Program
	out string // what it has written
}

// start runs a program until it writes that it is ready.
func start(t *testing.T, program string, args ...string) process {
	t.Helper()
	return untilReady(t, tools.Start(t, program, args...))
}

func untilReady(t *testing.T, p *tools.Program) process {
	t.Helper()
	var out strings.Builder
	for _, line := range p.Until(t, "ready") {
		out.WriteString(line + "\n")
	}
	return process{p, out.String()}
}

func (p process) open(t *testing.T) *image.Process {
	t.Helper()
	im := expect.Value(image.OpenProcess(p.Process.Pid))(t)
	t.Cleanup(func() { im.Close() })
	return im
}

// host builds the program that loads libraries.
func host(t *testing.T, flags ...string) string {
	t.Helper()
	tools.Need(t, "gcc")
	path := filepath.Join(t.TempDir(), "host")
	tools.Output(t, "gcc", append([]string{"-o", path, source(t, "host.c"), "-ldl"}, flags...)...)
	return path
}

// checkProcess compares the arrays of a process with what it has printed of
// them: for each module the address of its ELF header, and then its fields.
func checkProcess(t *testing.T, p *image.Process, out string, modules int) {
	t.Helper()
	at := map[string]uint64{}
	var m *image.Module
	for line := range strings.Lines(out) {
		var section string
		var value uint64
		expect.Value(fmt.Sscanf(line, "%s %v", &section, &value))(t, "%q", line)
		switch section {
		case "data":
			if p.Module(value) != nil {
				t.Errorf("%#x is mapped as data, and is of %+v", value, p.Module(value))
			}
		case "header":
			if m, modules = p.Module(value), modules-1; m == nil || m.Start != value {
				t.Fatalf("no module at %#x", value)
			}
			clear(at)
		default:
			checkField(t, p, m, section, at[section], value)
			at[section]++
		}
	}
	expect.Equal(t, 0, modules, "modules that are missing in %q", out)
}

// checkField compares field n of a section with its value in memory.
func checkField(t *testing.T, p *image.Process, m *image.Module, section string, n, want uint64) {
	t.Helper()
	all := expect.Value(p.Arrays(section))(t)
	read, size := p.Word, uint64(8)
	if section == "sdt_instances_rel" {
		read, size = p.Distance, 4
	}
	for _, r := range all {
		if p.Module(r.Start.Offset) != m {
			continue
		}
		ref, err := read(r.Start.Add(n * size))
		if err != nil || ref.Offset != want || ref.Undefined || ref.Symbol != "" {
			t.Errorf("%s %d of %s: %+v, %v, want %#x", section, n, m.Path, ref, err, want)
		}
		checkName(t, p, names[section][n], ref.Addr)
		return
	}
	t.Errorf("%s has no %s", m.Path, section)
}

// checkName checks what is told of an address.
func checkName(t *testing.T, p *image.Process, name string, a image.Addr) {
	t.Helper()
	if name == "" || name == "0" {
		return
	}
	if all, err := p.SymbolsAt(a); err != nil || !contains(all, name) {
		t.Errorf("%s is %q, %v, want %s", p.Place(a), all, err, name)
	}
	expect.Equal(t, strings.HasSuffix(name, "function"), p.Executable(a), "%s: Executable", name)
	if m := p.Module(a.Offset); p.Place(a) != fmt.Sprintf("%s+%#x", filepath.Base(m.Path), a.Offset-m.Base) {
		t.Errorf("%s at %#x is placed at %s", name, a.Offset, p.Place(a))
	}
	checkFileOffset(t, p, a)
}

// checkFileOffset checks that the file holds at the offset what is in memory, as
// far as nothing has written there.
func checkFileOffset(t *testing.T, p *image.Process, a image.Addr) {
	t.Helper()
	off, ok := p.FileOffset(a)
	if !ok || !p.Executable(a) {
		return
	}
	want := expect.Value(p.Bytes(a, 4))(t)
	got, err := p.Module(a.Offset).Object.ReadFile(int64(off), 4)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is offset %#x of its file: % x, %v, want % x", p.Place(a), off, got, err, want)
	}
}

// module finds the modules of a file.
func modules(p *image.Process, path string) (found []*image.Module) {
	for _, m := range p.Modules {
		if m.Path == path {
			found = append(found, m)
		}
	}
	return found
}

func TestProcess(t *testing.T) {
	for name, flags := range map[string][]string{
		"pie":    {"-fPIE", "-pie"},
		"no-pie": {"-fno-pie", "-no-pie"},
		// The segments share pages of the file, and each of these is mapped twice.
		"together": {"-fPIE", "-pie", "-Wl,-z,noseparate-code"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lib := library(t, flags[2:]...)
			program := host(t, append(flags, "-O", "-DWORDS", source(t, "words.c"))...)
			running := start(t, program, lib, lib)
			p := running.open(t)
			checkProcess(t, p, running.out, 3)
			expect.Equal(t, 2, len(modules(p, lib)), "modules of %s", lib)
			for _, m := range p.Modules {
				if m.Note != "" || m.Image == nil || m.Source != image.FromPath && m.Path != "[vdso]" {
					t.Errorf("%s: from %d, %q", m.Path, m.Source, m.Note)
				}
			}
			if p.Machine().Traits().Name == "amd64" {
				checkVDSO(t, p)
			}
		})
	}
}

// checkVDSO compares the library in memory with what debug/elf reads there.
func checkVDSO(t *testing.T, p *image.Process) {
	t.Helper()
	found := modules(p, "[vdso]")
	if len(found) != 1 {
		t.Fatalf("%d modules [vdso]", len(found))
	}
	m := found[0]
	symbols, err := disk.ELF(t, expect.Value(p.Bytes(image.Addr{Offset: m.Start}, m.End-m.Start))(t)).DynamicSymbols()
	if err != nil || len(symbols) == 0 {
		t.Fatal(symbols, err)
	}
	for _, s := range symbols {
		a := image.Addr{Offset: m.Base + s.Value}
		if all, err := p.SymbolsAt(a); s.Section < elf.SHN_LORESERVE && (err != nil || !contains(all, s.Name)) {
			t.Errorf("%s: %q, %v, want %s", p.Place(a), all, err, s.Name)
		}
	}
}

// TestProcessFiles is about files that have changed since they were mapped.
func TestProcessFiles(t *testing.T) {
	tools.Need(t, "gcc")
	program, lib := host(t), library(t)
	other := library(t, "-DOTHER=1", "-g")
	for _, tt := range []struct {
		name   string
		change func(path string) error
		note   string
	}{
		{"deleted", os.Remove, "deleted since it was mapped"},
		{"replaced", func(path string) error { return copyOver(other, path) }, "replaced on disk since it was mapped"},
		{"moved", func(path string) error { return os.Rename(path, path+".old") }, ""},
		{"again", func(path string) error { // another file of the same contents
			return copyOver(lib, path)
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "lib.so")
			expect.OK(t, copyOver(lib, path))
			running := start(t, program, path)
			expect.OK(t, tt.change(path))
			p := running.open(t)
			m := p.Module(header0(t, running.out))
			if m == nil || !strings.HasPrefix(m.Note, tt.note) || tt.note == "" && m.Note != "" {
				t.Fatalf("%+v, want the note %q", m, tt.note)
			}
			if m.Source != image.FromMemory {
				checkProcess(t, p, running.out, 1)
			}
		})
	}
}

func copyOver(from, to string) error {
	data, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to+".new", data, 0o755); err != nil {
		return err
	}
	return os.Rename(to+".new", to)
}

// header0 returns the first address in a program's output.
func header0(t *testing.T, out string) (addr uint64) {
	t.Helper()
	expect.Value(fmt.Sscanf(out, "header %v", &addr))(t, "%q", out)
	return addr
}

// TestProcessMemory reads modules from memory alone. What dynamic symbols name
// is found there.
func TestProcessMemory(t *testing.T) {
	lib := library(t)
	running := start(t, host(t), lib)
	p := running.open(t)
	want := modules(p, lib)[0]
	arrays, err := p.ModuleArrays(want, "sdt_instances_set")
	if err != nil || len(arrays) != 1 {
		t.Fatal(arrays, err)
	}
	expect.OK(t, os.Remove(lib))
	p.ReopenByPath()
	got := p.Module(want.Start)
	if got == nil || got.Source != image.FromMemory || got.Base != want.Base || got.Start != want.Start || got.End != want.End ||
		got.Note != "deleted since it was mapped: read from memory, without its section headers" {
		t.Fatalf("%+v, want %+v", got, want)
	}
	found, err := p.ModuleArrays(got, "sdt_instances_set")
	if err != nil || len(found) != 1 || found[0] != arrays[0] {
		t.Fatalf("%v, %v, want %v", found, err, arrays)
	}
	checkName(t, p, "sdt_own", expect.Value(p.Word(arrays[0].Start))(t).Addr)
}

func TestProcessEnds(t *testing.T) {
	running := start(t, host(t), library(t))
	p := running.open(t)
	all, err := p.Arrays("sdt_instances_set")
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	expect.OK(t, running.Process.Kill())
	// Wait without reaping: then it is a zombie, and its number is not reused.
	expect.Soon(t, func() bool {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", running.Process.Pid))
		return err != nil || bytes.Contains(status, []byte(") Z "))
	}, "the process has ended")
	pid := running.Process.Pid
	want := fmt.Sprintf("process %d: the process has ended, or runs another program now", pid)
	expect.Equal(t, want, expect.Failure(p.Word(all[0].Start)))
	expect.Equal(t, want, expect.Failure(image.OpenProcess(pid)))
	running.Wait()
	want = fmt.Sprintf("process %d: no such process", pid)
	expect.Equal(t, want, expect.Failure(image.OpenProcess(pid)))
	expect.OK(t, p.Close())
}

// TestProcessExec looks at a process that becomes another program.
func TestProcessExec(t *testing.T) {
	tools.Need(t, "sh")
	running := start(t, "sh", "-c", "echo ready; read line; exec cat")
	p := running.open(t)
	addr := image.Addr{Offset: p.Modules[0].Start}
	expect.Value(p.Bytes(addr, 4))(t)
	expect.Value(running.Stdin.Write([]byte("\n")))(t)
	var err error
	expect.Soon(t, func() bool {
		_, err = p.Bytes(addr, 4)
		return err != nil
	}, "the process runs another program")
	want := fmt.Sprintf("process %d: the process has ended, or runs another program now", running.Process.Pid)
	expect.Equal(t, want, fmt.Sprint(err))
}

// TestProcessRoot is about a process with another root, which names its files
// as it sees them.
func TestProcessRoot(t *testing.T) {
	tools.Need(t, "gcc")
	if os.Getuid() != 0 {
		t.Skip("only root can change the root")
	}
	program := host(t, "-static", "-DWORDS", source(t, "words.c"))
	for name, attr := range map[string]*syscall.SysProcAttr{
		"root":      {Chroot: filepath.Dir(program)},
		"namespace": {Chroot: filepath.Dir(program), Cloneflags: syscall.CLONE_NEWNS},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.Command("/host")
			cmd.SysProcAttr = attr
			running := untilReady(t, tools.StartCommand(t, cmd))
			p := running.open(t)
			checkProcess(t, p, running.out, 1)
			if m := p.Module(header0(t, running.out)); m.Path != program || m.Source != image.FromPath || m.Note != "" {
				t.Errorf("%+v", m)
			}
		})
	}
}

// TestProcessPermission looks at a process of another user.
func TestProcessPermission(t *testing.T) {
	const asNobody = "IMAGE_TEST_PID"
	if pid := os.Getenv(asNobody); pid != "" {
		var n int
		fmt.Sscan(pid, &n)
		_, err := image.OpenProcess(n)
		fmt.Println(err)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestProcessPermission$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", asNobody, os.Getpid()))
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	} else {
		cmd.Env[len(cmd.Env)-1] = asNobody + "=1"
	}
	cmd.Dir = "/"
	out, err := cmd.CombinedOutput()
	const want = ": no permission to read it: that needs the same user or CAP_SYS_PTRACE\n"
	if err != nil || !strings.Contains(string(out), want) {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestNoProcess(t *testing.T) {
	for _, pid := range []int{0, -1, 1 << 30} {
		want := fmt.Sprintf("process %d: no such process", pid)
		expect.Equal(t, want, expect.Failure(image.OpenProcess(pid)))
	}
}
