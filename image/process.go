package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"sort"
	"strings"
	"syscall"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// The image of a running process: an address is one of its memory, where fields hold
// what they refer to.

// Process is a running process, as Linux shows it in /proc (proc(5)). Its
// addresses are those of its memory, where the loader has relocated everything;
// its arrays and symbols are those of the files that are mapped. It is looked
// at and not stopped: the memory map is that of the moment when it was opened. It is
// an Image.
type Process struct {
	Modules []*Module // by address

	name   string // for messages
	dir    string // in /proc; once it is open, through its descriptor, which no other process of the number gets
	page   uint64 // bytes
	memory *processMemory
	maps   []Mapping
	files  []io.Closer
	looks  int     // at segments
	main   *Module // whose machine is that of the process
}

// OpenProcess opens a running process by its ID. It takes the permission to attach to
// it (ptrace(2)). An error is an *elfreloc.Error with the process in
// place of a file. What is wrong with one of its files is in Module.Note. Close it.
func OpenProcess(pid int) (*Process, error) {
	p := runningProcess(pid)
	if err := p.open(); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// ProcessDirectory returns the directory in /proc of a process, or of one of its threads if the first has ended: its own shows no
// memory then.
func ProcessDirectory(pid int) string {
	dir := fmt.Sprintf("/proc/%d", pid)
	if !isZombie(dir) {
		return dir
	}
	tasks, _ := os.ReadDir(dir + "/task")
	for _, task := range tasks {
		if thread := dir + "/task/" + task.Name(); !isZombie(thread) {
			return thread
		}
	}
	return dir
}

// runningProcess returns a process of which nothing is open yet.
func runningProcess(pid int) *Process {
	return &Process{name: fmt.Sprintf("process %d", pid), dir: ProcessDirectory(pid), page: uint64(os.Getpagesize())}
}

func (p *Process) open() error {
	if _, err := os.Stat("/proc/self/maps"); runtime.GOOS != "linux" || err != nil {
		return p.error(errors.New("no /proc here: processes can only be read on Linux"))
	}
	directory, err := os.OpenFile(p.dir, directoryFlags, 0)
	if err != nil {
		return p.openError(err)
	}
	p.files = append(p.files, directory)
	p.dir = fmt.Sprintf("/proc/self/fd/%d", directory.Fd())
	file, err := os.Open(p.dir + "/mem")
	if err != nil {
		return p.openError(err)
	}
	p.memory = &processMemory{File: file}
	p.files = append(p.files, file)
	if p.maps, err = readMaps(p.dir); err != nil {
		return p.openError(err)
	}
	if len(p.maps) == 0 {
		return p.error(p.noMemory())
	}
	p.openModules()
	if p.memory.ended {
		return p.error(errEnded)
	}
	return p.findMain()
}

// openError explains why a file of /proc/PID cannot be read.
func (p *Process) openError(err error) error {
	switch {
	case isZombie(p.dir): // which belongs to root
		err = errEnded
	case errors.Is(err, fs.ErrPermission):
		err = p.explainPermission()
	case errors.Is(err, fs.ErrNotExist):
		err = errors.New("no such process")
	case errors.Is(err, syscall.ESRCH):
		err = p.noMemory()
	}
	return p.error(err)
}

// noMemory explains a process without memory.
func (p *Process) noMemory() error {
	if _, err := os.Stat(p.dir); err != nil || isZombie(p.dir) {
		return errEnded
	}
	return errors.New("has no memory of its own: it is a thread of the kernel")
}

// isZombie reports whether a process or thread has ended, and its parent does not know.
func isZombie(dir string) bool {
	status, err := os.ReadFile(dir + "/status")
	return err == nil && (strings.Contains(string(status), "\nState:\tZ") || strings.Contains(string(status), "\nState:\tX"))
}

// findMain finds the module that tells the machine: the program, else the first.
func (p *Process) findMain() error {
	program, err := os.Stat(p.dir + "/exe")
	isProgram := func(m *Module) bool { return err == nil && m.mappings[0].hasInode(program) }
	for _, m := range p.Modules {
		if m.Image != nil && (p.main == nil || isProgram(m) && !isProgram(p.main)) {
			p.main = m
		}
	}
	if p.main != nil {
		return nil
	}
	if len(p.Modules) > 0 {
		return p.error(fmt.Errorf("%s: %s", p.Modules[0].Path, p.Modules[0].Note))
	}
	return p.error(errors.New("runs no ELF file"))
}

func (p *Process) error(err error) error { return &elfreloc.Error{File: p.Name(), Err: err} }

func (p *Process) errorAt(addr uint64, format string, args ...any) error {
	return &elfreloc.Error{File: p.Name(), Section: p.Place(Addr{Offset: addr}), Err: fmt.Errorf(format, args...)}
}

// Close closes the files of the process's modules, which cannot be used any more.
func (p *Process) Close() error {
	var errs []error
	for _, f := range p.files {
		errs = append(errs, f.Close())
	}
	p.files = nil
	return errors.Join(errs...)
}

// processMemory is /proc/PID/mem. Once the process has ended, or has become
// another program, it is empty.
type processMemory struct {
	*os.File
	ended bool // once it was found to be so
}

func (m *processMemory) ReadAt(b []byte, addr int64) (int, error) {
	if addr < 0 {
		return 0, errors.New("is not in the process's part of the address space")
	}
	n, err := m.File.ReadAt(b, addr)
	switch {
	case n == len(b):
		return n, nil
	case errors.Is(err, io.EOF) || errors.Is(err, syscall.ESRCH):
		m.ended = true
		return n, errEnded
	case errors.Is(err, syscall.EIO) || errors.Is(err, syscall.EFAULT):
		return n, fmt.Errorf("cannot be read at %#x", uint64(addr)+uint64(n))
	}
	return n, err
}

// mapping finds the mapping of an address, or nil.
func (p *Process) mapping(addr uint64) *Mapping {
	i := sort.Search(len(p.maps), func(i int) bool { return p.maps[i].End > addr })
	if i < len(p.maps) && p.maps[i].Start <= addr {
		return &p.maps[i]
	}
	return nil
}

// mapped reports whether n bytes at an address are all mapped.
func (p *Process) mapped(addr, n uint64) bool {
	m := p.mapping(addr)
	for m != nil && n > m.End-addr {
		n -= m.End - addr
		addr = m.End
		m = p.mapping(addr)
	}
	return m != nil
}

// Module finds the module that an address is in, or nil.
func (p *Process) Module(addr uint64) *Module {
	i := sort.Search(len(p.Modules), func(i int) bool { return p.Modules[i].Start > addr })
	if i > 0 && addr < p.Modules[i-1].End {
		return p.Modules[i-1]
	}
	return nil
}

// FileOffset returns the offset in its file of what is mapped at an address, as
// OpenBSD's dt(4) has it: address - start of the mapping + its offset. There is
// none for memory that belongs to no file.
func (p *Process) FileOffset(a Addr) (uint64, bool) {
	m := p.mapping(a.Offset)
	if m == nil || m.file == (fileID{}) && m.Path != vdso {
		return 0, false
	}
	return a.Offset - m.Start + m.Offset, true
}

func (p *Process) Name() string                { return p.name }
func (p *Process) Machine() arch.Machine       { return p.main.Image.Machine() }
func (p *Process) Encoding() elfreloc.Encoding { return p.main.Image.Encoding() }

// Place shows an address as its module and the distance from its load base: the
// address that the module was linked for, which other tools take for its file.
func (p *Process) Place(a Addr) string {
	if m := p.Module(a.Offset); m != nil {
		return fmt.Sprintf("%s+%#x", path.Base(m.Path), a.Offset-m.Base)
	}
	return fmt.Sprintf("%#x", a.Offset)
}

func (p *Process) Executable(a Addr) bool {
	m := p.mapping(a.Offset)
	return a.Section == 0 && m != nil && m.Executable
}

// maxRead bounds what is read of a process at once: more than any array of
// records, and less than memory that is reserved and not there.
const maxRead = 1 << 28

func (p *Process) Bytes(a Addr, n uint64) ([]byte, error) {
	if !p.mapped(a.Offset, n) || a.Section != 0 {
		return nil, p.errorAt(a.Offset, "is not in the process's memory, or not all of its %#x bytes", n)
	}
	if n > maxRead {
		return nil, p.errorAt(a.Offset, "%#x bytes wanted at once", n)
	}
	b := make([]byte, n)
	_, err := p.memory.ReadAt(b, int64(a.Offset))
	switch {
	case errors.Is(err, errEnded):
		return nil, p.error(errEnded)
	case err != nil:
		return nil, p.errorAt(a.Offset, "%w", err)
	}
	return b, nil
}

func (p *Process) Word(a Addr) (Ref, error) {
	value, err := plainWord(p, a)
	return Ref{Addr: Addr{Offset: value}}, err
}

func (p *Process) Distance(a Addr) (Ref, error) { return plainDistance(p, a) }

// Arrays finds those of all modules for the machine of the process.
func (p *Process) Arrays(name string) ([]Range, error) {
	var arrays []Range
	for _, m := range p.Modules {
		found, err := p.ModuleArrays(m, name)
		if err != nil {
			return nil, err
		}
		arrays = append(arrays, found...)
	}
	return arrays, nil
}

// ModuleArrays finds those of one module, so that the others are not lost if it
// is broken.
func (p *Process) ModuleArrays(m *Module, name string) ([]Range, error) {
	if m.Image == nil || m.Image.Machine() != p.Machine() || m.Image.Encoding() != p.Encoding() {
		return nil, nil
	}
	arrays, err := m.Image.Arrays(name)
	if err != nil {
		return nil, err
	}
	for i := range arrays {
		arrays[i].Start.Offset += m.Base
	}
	return arrays, nil
}

func (p *Process) SymbolsAt(a Addr) ([]string, error) {
	m := p.Module(a.Offset)
	if m == nil || m.Image == nil {
		return nil, nil
	}
	return m.Image.SymbolsAt(Addr{Offset: a.Offset - m.Base})
}
