package image

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/regular"
)

// Module is an ELF file that is loaded in a process. A file that is loaded twice
// is two modules.
type Module struct {
	Path string // as the maps have it, or "[vdso]"
	// Base is the load base: what was added to the addresses that the file was
	// linked for (gABI, "Base Address").
	Base uint64
	// Root is where the process's root is in this file system, "" if Path leads to the file from here: what the file names, such as a debug
	// file, is found there. It is good as long as the process is open.
	Root       string
	Start, End uint64 // the addresses that it takes; End is behind the last
	mappings   []Mapping
	Source     Source
	// Note warns of what is wrong with the file: one line, mostly "".
	Note string
	// Limited reports that a limit keeps the file from being read, which Note names. Then nothing is known of its probes.
	Limited bool
	// Object and Image are the file, at the addresses that it was linked for.
	// Both are nil when it cannot be read; Image is, when the machine is not
	// supported. Note says why.
	Object *elfreloc.Object
	Image  Image
	// Info is of the open file that Object reads, as it was when it was opened; nil if that is memory.
	Info fs.FileInfo
}

// Source is where the contents of a module's file were found.
type Source uint8

const (
	NoSource    Source = iota
	FromPath           // its path, in the process's view of the file system
	FromMapping        // /proc/PID/map_files or /proc/PID/exe: the file that is mapped, whatever its name
	FromMemory         // what is mapped of it
)

// openModules makes modules of the mappings, each file opened once.
func (p *Process) openModules() {
	files := map[fileID][]Mapping{}
	var order []fileID
	for _, m := range p.maps {
		if m.file == (fileID{}) && m.Path != vdso {
			continue
		}
		if files[m.file] == nil {
			order = append(order, m.file)
		}
		files[m.file] = append(files[m.file], m)
	}
	for _, id := range order {
		maps := files[id]
		if !p.mayBeModule(maps) {
			continue
		}
		if f := p.openFile(maps); f.object != nil {
			p.addModules(maps, &f)
		} else if maps[0].Offset == 0 {
			p.addUnreadable(maps, f.note)
		}
	}
	slices.SortStableFunc(p.Modules, func(a, b *Module) int { return cmp.Compare(a.Start, b.Start) })
}

// mayBeModule distinguishes files that may be loaded from those that are only read, and
// which may be devices, so that they are never opened: they begin as ELF files
// that are linked do.
func (p *Process) mayBeModule(maps []Mapping) bool {
	for _, m := range maps {
		if m.Offset != 0 {
			continue
		}
		var head [elf.EI_NIDENT + 2]byte
		if _, err := p.memory.ReadAt(head[:], int64(m.Start)); err != nil || string(head[:4]) != elf.ELFMAG {
			return false
		}
		low := head[elf.EI_NIDENT] // e_type is a byte of value, in either order
		typ := elf.Type(low | head[elf.EI_NIDENT+1])
		return typ == elf.ET_EXEC || typ == elf.ET_DYN
	}
	isExecutable := func(m Mapping) bool { return m.Executable }
	return slices.ContainsFunc(maps, isExecutable) // its header is not mapped
}

// openedFile is a file of a process.
type openedFile struct {
	object *elfreloc.Object // nil when it cannot be read
	info   fs.FileInfo      // nil for memory
	path   string
	root   string
	source Source
	note   string

	image *linked // of all modules, unless they are read from memory; once there is one
}

// mostOfModule bounds what is read of a module at once, in bytes: nobody has named its file.
const mostOfModule = 1 << 30

// candidate is a way to open a file that is mapped.
type candidate struct {
	path   string // that it shows
	root   string // below which that is, "" for ours
	source Source
	open   func() (*regular.File, error)
}

// candidates returns the ways to a mapping's file: by its path if that is still the same file, else by its mapping, which takes
// privileges. The maps show the path from the root of this process or, where it does not reach that, from the root of
// the process's mount namespace, which is mostly the process's own.
func (p *Process) candidates(m *Mapping) (all []candidate) {
	root := p.dir + "/root"
	for _, path := range m.paths() {
		all = append(all,
			candidate{path, "", FromPath, func() (*regular.File, error) { return regular.Open(path) }},
			candidate{path, root, FromPath, func() (*regular.File, error) { return regular.OpenBelow(root, path, path) }})
	}
	for _, link := range []string{fmt.Sprintf("%s/map_files/%x-%x", p.dir, m.Start, m.End), p.dir + "/exe"} {
		all = append(all, candidate{m.Path, "", FromMapping, func() (*regular.File, error) { return regular.Open(link) }})
	}
	return all
}

// openFile opens the file that is mapped: by a candidate, else from memory.
func (p *Process) openFile(maps []Mapping) openedFile {
	m, id := maps[0], ""
	inMemory, memErr := openMemory(p.memory, maps, m.Path)
	if memErr == nil {
		id = buildID(inMemory)
		if m.Path == vdso {
			return openedFile{object: inMemory, path: vdso, source: FromMemory}
		}
	}
	note := ""
	for _, exact := range []bool{true, false} { // another file of the same build ID is no match while the mapped one is there
		for _, c := range p.candidates(&m) {
			if exact && c.source != FromPath {
				continue
			}
			o, info, why := p.openCandidate(c, m, id, exact)
			switch {
			case o != nil && c.source == FromPath:
				return openedFile{object: o, info: info, path: c.path, root: c.root, source: c.source}
			case o != nil:
				return openedFile{object: o, info: info, path: c.path, source: c.source, note: note}
			}
			note = cmp.Or(note, why) // of the first
		}
	}
	if memErr == nil {
		return openedFile{object: inMemory, path: m.Path, source: FromMemory, note: note + ": read from memory, without its section headers"}
	}
	return openedFile{note: fmt.Sprintf("%s, and in memory: %v", note, memErr)}
}

// openCandidate opens a file, or says why it is not what is mapped. Where
// a file system numbers its files as it likes, an equal build ID will do, unless exact. It
// stays open as long as the process.
func (p *Process) openCandidate(c candidate, m Mapping, id string, exact bool) (*elfreloc.Object, fs.FileInfo, string) {
	f, err := c.open()
	if err != nil {
		if exact {
			return nil, nil, ""
		}
		return nil, nil, whyNotOpen(err)
	}
	f.Most = mostOfModule
	o, err := elfreloc.Open(f, f.Info.Size(), c.path)
	same, note := m.isOf(f.File, f.Info), ""
	switch {
	case !same && exact: // the second round says why
	case err != nil && same:
		note = err.Error()
	case err == nil && same && buildID(o) != id && id != "":
		note = "overwritten on disk since it was mapped: its build ID differs"
	case err != nil, !same && id == "", buildID(o) != id && id != "":
		note = errReplaced.Error()
	default:
		p.files = append(p.files, f)
		return o, f.Info, ""
	}
	f.Close()
	return nil, nil, note
}

// errReplaced is of a path that leads to another file than the mapped one.
var errReplaced = errors.New("replaced on disk since it was mapped")

// whyNotOpen says what an error of opening means for a file that is mapped.
func whyNotOpen(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "deleted since it was mapped"
	case errors.Is(err, fs.ErrPermission):
		return "no permission to open it"
	}
	return errReplaced.Error()
}

// addModules finds out where a file is loaded. It may be so more than once, and
// parts of it may be mapped elsewhere to be read as data.
func (p *Process) addModules(maps []Mapping, f *openedFile) {
	if f.object.Type != elf.ET_EXEC && f.object.Type != elf.ET_DYN {
		return
	}
	segments, err := loadSegments(f.object)
	if err == nil {
		err = p.chargeSegments(f.object, len(segments)*len(maps))
	}
	if err != nil {
		p.addUnreadable(maps, bare(err).Error())
		p.Modules[len(p.Modules)-1].Limited = regular.IsLimit(err)
		return
	}
	var modules []*Module
	for _, m := range maps {
		bases := p.loadBases(segments, m)
		if len(bases) == 0 {
			continue
		}
		if n := len(modules); n == 0 || !slices.Contains(bases, modules[n-1].Base) {
			modules = append(modules, &Module{Path: f.path, Root: f.root, Base: bases[0], Source: f.source, Note: f.note, Object: f.object, Info: f.info})
		}
		last := modules[len(modules)-1]
		last.mappings = append(last.mappings, m)
	}
	for _, m := range modules {
		if !p.isLoaded(segments, m) {
			continue
		}
		p.describe(m, f)
		p.Modules = append(p.Modules, m)
	}
}

// maxSegments bounds the segments that each mapping is compared with. Linux runs
// no program with more than a tenth of that.
const maxSegments = 10000

// maxLooks bounds the looks at segments in all: of each file there is one for each of its segments and mappings. Linux maps at most
// 65,530 parts of files, of five segments each.
const maxLooks = 1 << 20

// chargeSegments takes looks at segments from those that are left.
func (p *Process) chargeSegments(o *elfreloc.Object, looks int) error {
	if looks > maxLooks-p.looks {
		return &elfreloc.Error{File: o.Name, Err: regular.Limitf("%d segments and mappings would have to be compared, and %d are left of %d", looks, maxLooks-p.looks, maxLooks)}
	}
	p.looks += looks
	return nil
}

// loadSegments returns the PT_LOAD program headers.
func loadSegments(o *elfreloc.Object) ([]elfreloc.Segment, error) {
	segments, err := o.Segments()
	if err != nil {
		return nil, err
	}
	segments = slices.DeleteFunc(segments, func(s elfreloc.Segment) bool { return s.Type != elf.PT_LOAD || s.Memsz == 0 })
	if len(segments) > maxSegments {
		return nil, &elfreloc.Error{File: o.Name, Err: regular.Limitf("has %d segments to load, and %d are the most", len(segments), maxSegments)}
	}
	return segments, nil
}

// describe makes the image of a module. Modules of one file share it, except in memory, where the loader has changed each.
func (p *Process) describe(m *Module, f *openedFile) {
	machine := machines.Lookup(m.Object.ABI())
	if machine == nil {
		m.Note = fmt.Sprintf("the machine %v is not supported", m.Object.Machine)
		return
	}
	if f.image != nil {
		m.Image = f.image
		return
	}
	base := uint64(0)
	if m.Source == FromMemory {
		base = m.Base
	}
	im, err := openLinked(m.Object, machine, base)
	if err != nil && m.Note != "" {
		err = fmt.Errorf("%s, which does not do: %w", m.Note, err)
	}
	if err != nil {
		m.Note = err.Error()
		return
	}
	m.Image = im
	if m.Source != FromMemory {
		f.image = im
	}
}

// bare takes the name of the file from an error: a module has it.
func bare(err error) error {
	if e, ok := errors.AsType[*elfreloc.Error](err); ok && e.Section == "" {
		return e.Err
	}
	return err
}

// addUnreadable keeps a module that cannot be read, so that it can be named.
func (p *Process) addUnreadable(maps []Mapping, note string) {
	n := 1
	for n < len(maps) && maps[n].Start == maps[n-1].End {
		n++
	}
	p.Modules = append(p.Modules, &Module{Path: maps[0].Path, Base: maps[0].Start,
		Start: maps[0].Start, End: maps[n-1].End, mappings: maps[:n], Note: note})
}

// loadBases returns the load bases that a mapping tells, the likeliest first: OpenBSD's dt(4) subtracts the
// address of the segment, as it is mapped, from that of the mapping. Segments are mapped in whole pages. Pages that
// hold the end of one segment and the start of another are mapped twice, so the
// segment that is mapped is one with the same permission to execute, if there is.
func (p *Process) loadBases(segments []elfreloc.Segment, m Mapping) (bases []uint64) {
	isLikely := false
	for _, s := range segments {
		if s.Filesz == 0 || m.Offset < s.Offset&^(p.page-1) || m.Offset >= s.Offset+s.Filesz {
			continue
		}
		bases = append(bases, m.Start-m.Offset+s.Offset-s.Vaddr)
		if last := len(bases) - 1; !isLikely && s.Flags&elf.PF_X != 0 == m.Executable {
			isLikely = true
			bases[0], bases[last] = bases[last], bases[0]
		}
	}
	return bases
}

// isLoaded finds the addresses of a module, and reports whether memory is there,
// executable where code is: else the file was mapped to be read.
func (p *Process) isLoaded(segments []elfreloc.Segment, m *Module) bool {
	m.Start, m.End = m.mappings[0].Start, 0
	for _, s := range segments {
		at := p.mapping(m.Base + s.Vaddr)
		if at == nil || s.Flags&elf.PF_X != 0 && !at.Executable {
			return false
		}
		m.Start = min(m.Start, at.Start)
		m.End = max(m.End, (m.Base+s.Vaddr+s.Memsz+p.page-1)&^(p.page-1))
	}
	return m.Start < m.End && (m.Object.Type == elf.ET_DYN || m.Base == 0)
}

// fileInMemory is what is left of a file in the memory of a process: its
// segments, at the offsets that they have in the file. What is between them
// cannot be read. Section headers, at the file's end, are mostly not there.
type fileInMemory struct {
	memory io.ReaderAt // by address
	maps   []Mapping
	header []byte // the ELF header, in place of the one in memory
}

func (f *fileInMemory) ReadAt(b []byte, off int64) (int, error) {
	done := 0
	for done < len(b) {
		at := uint64(off) + uint64(done)
		if at < uint64(len(f.header)) {
			done += copy(b[done:], f.header[at:])
			continue
		}
		m := f.at(at)
		if m == nil {
			return done, fmt.Errorf("offset %#x of the file is not in memory", at)
		}
		want := min(uint64(len(b)-done), m.Offset+(m.End-m.Start)-at)
		n, err := f.memory.ReadAt(b[done:done+int(want)], int64(m.Start+(at-m.Offset)))
		if done += n; n < int(want) {
			return done, err
		}
	}
	return done, nil
}

// mostOfMemory bounds what is read at once of a file that is only left in memory, in bytes: pages that nobody has touched take none.
const mostOfMemory = 64 << 20

// Held implements elfreloc.BoundedReader.
func (f *fileInMemory) Held() int64 { return min(f.size(), mostOfMemory) }

// CheckRead implements elfreloc.BoundedReader.
func (f *fileInMemory) CheckRead(off, n int64) error {
	if n > mostOfMemory {
		return fmt.Errorf("%d MiB at offset %#x would have to be read from memory; %d are the most", n>>20, off, mostOfMemory>>20)
	}
	return nil
}

func (f *fileInMemory) at(off uint64) *Mapping {
	for i := range f.maps {
		if m := &f.maps[i]; off >= m.Offset && off-m.Offset < m.End-m.Start {
			return m
		}
	}
	return nil
}

// size returns the offset behind the last byte in memory.
func (f *fileInMemory) size() int64 {
	size := uint64(0)
	for _, m := range f.maps {
		if end := m.Offset + (m.End - m.Start); end >= m.Offset && end < 1<<62 {
			size = max(size, end)
		}
	}
	return int64(size)
}

// openMemory opens the ELF file whose first mapping is maps[0]. Where its
// section headers cannot be read, it is opened without any.
func openMemory(memory io.ReaderAt, maps []Mapping, name string) (*elfreloc.Object, error) {
	f := &fileInMemory{memory: memory, maps: maps}
	if maps[0].Path == vdso { // all of it is in memory
		if o, err := elfreloc.Open(f, f.size(), name); err == nil {
			return o, nil
		}
	}
	header := make([]byte, 64)
	if _, err := f.ReadAt(header, 0); err != nil {
		return nil, &elfreloc.Error{File: name, Err: err}
	}
	switch elf.Class(header[elf.EI_CLASS]) { // e_shoff; e_shnum and e_shstrndx (gABI, "ELF Header")
	case elf.ELFCLASS32:
		header = header[:52]
		clear(header[32:36])
		clear(header[48:52])
	case elf.ELFCLASS64:
		clear(header[40:48])
		clear(header[60:64])
	}
	f.header = header
	return elfreloc.Open(f, f.size(), name)
}

// vdso is the path of the library that the kernel maps into every process.
const vdso = "[vdso]"

// buildID returns what the linker made of a linked file's contents, "" when there is
// none.
func buildID(o *elfreloc.Object) string {
	id, err := debuginfo.BuildID(o)
	if err != nil {
		return ""
	}
	return string(id)
}

var errEnded = errors.New("the process has ended, or runs another program now")
