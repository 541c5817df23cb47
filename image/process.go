package image

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"runtime"
	"slices"
	"sort"
	"strconv"
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
	dir    string // in /proc
	page   uint64 // bytes
	memory *processMemory
	maps   []Mapping
	files  []io.Closer
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
	file, err := os.Open(p.dir + "/mem")
	if err != nil {
		return p.openError(err)
	}
	p.memory = &processMemory{File: file}
	p.files = append(p.files, file)
	text, err := os.ReadFile(p.dir + "/maps")
	if err != nil {
		return p.openError(err)
	}
	if p.maps, err = parseMaps(string(text)); err != nil {
		return p.error(err)
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
		err = errors.New("no permission to read it: that needs the same user or CAP_SYS_PTRACE")
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
	program := uint64(0)
	if info, err := os.Stat(p.dir + "/exe"); err == nil {
		program = inodeOf(info)
	}
	isProgram := func(m *Module) bool { return m.mappings[0].file.inode == program }
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

// Mapping is a part of a process's memory: a line of /proc/PID/maps (proc(5)).
type Mapping struct {
	Start, End uint64 // addresses; End is behind the last byte
	Offset     uint64 // in the file, bytes
	Executable bool
	Path       string // "[stack]" and its kin, or ""
	// Deleted reports that the file's name is gone, or another's.
	Deleted bool

	file fileID // {} for memory that belongs to no file
}

// fileID tells files apart, by what stat and the maps say.
type fileID struct {
	major, minor uint32 // of the device
	inode        uint64
}

// deleted is what Linux writes behind the path of a file without a name.
const deleted = " (deleted)"

// parseMaps reads /proc/PID/maps, which is sorted by address.
func parseMaps(text string) ([]Mapping, error) {
	var mappings []Mapping
	for line := range strings.Lines(text) {
		m, ok := parseMapping(strings.TrimSuffix(line, "\n"))
		if !ok || len(mappings) > 0 && m.Start < mappings[len(mappings)-1].End {
			return nil, fmt.Errorf("the line %q of its memory map makes no sense", line)
		}
		mappings = append(mappings, m)
	}
	return mappings, nil
}

// parseMapping reads one line:
//
//	start-end perms offset major:minor inode   path
func parseMapping(line string) (m Mapping, ok bool) {
	var word [5]string
	for i := range word {
		word[i], line, _ = strings.Cut(line, " ")
	}
	start, end, ok1 := strings.Cut(word[0], "-")
	major, minor, ok2 := strings.Cut(word[3], ":")
	if !ok1 || !ok2 || len(word[1]) != 4 {
		return m, false
	}
	m.Executable = word[1][2] == 'x'
	var numbers [6]uint64
	for i, w := range []string{start, end, word[2], major, minor, word[4]} {
		base := 16
		if i == 5 {
			base = 10
		}
		n, err := strconv.ParseUint(w, base, 64)
		if err != nil {
			return m, false
		}
		numbers[i] = n
	}
	m.Start, m.End, m.Offset = numbers[0], numbers[1], numbers[2]
	m.file = fileID{uint32(numbers[3]), uint32(numbers[4]), numbers[5]}
	if m.file.inode == 0 {
		m.file = fileID{}
	}
	m.Path = strings.ReplaceAll(strings.TrimLeft(line, " "), `\012`, "\n")
	if m.file != (fileID{}) {
		m.Path, m.Deleted = strings.CutSuffix(m.Path, deleted)
	}
	return m, m.Start < m.End
}

// ErrNoMemory is of a process that has ended, or is a thread of the kernel.
var ErrNoMemory = errors.New("has no memory of its own")

// MappedCode returns the paths of the files whose code a process has mapped, each once, below the root
// of this process. Files without a name are left out.
func MappedCode(pid int) ([]string, error) {
	p := runningProcess(pid)
	text, err := os.ReadFile(p.dir + "/maps")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH), err == nil && len(text) == 0:
		return nil, ErrNoMemory
	case err != nil:
		return nil, p.openError(err)
	}
	maps, err := parseMaps(string(text))
	if err != nil {
		return nil, p.error(err)
	}
	root := ""
	if ownRoot, err := os.Stat("/"); err == nil {
		if info, err := os.Stat(p.dir + "/root/"); err == nil && !os.SameFile(ownRoot, info) {
			root = p.dir + "/root"
		}
	}
	var files []string
	for _, m := range maps {
		if path := root + m.Path; m.Executable && m.file.inode != 0 && !m.Deleted && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	return files, nil
}

// Mappings returns the memory map of a process as it is now, by address.
func Mappings(pid int) ([]Mapping, error) {
	p := runningProcess(pid)
	text, err := os.ReadFile(p.dir + "/maps")
	if err != nil {
		return nil, p.openError(err)
	}
	maps, err := parseMaps(string(text))
	if err != nil {
		return nil, p.error(err)
	}
	return maps, nil
}
