package image

// The image of a process that has ended, from the core file that Linux or a debugger wrote of it
// (core(5)). PT_LOAD segments hold the memory, a note has the paths of the files that were mapped.

import (
	"bytes"
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"

	"sdtconvert/elfreloc"
)

// coreFile is the memory that a core file holds.
type coreFile struct {
	*elfreloc.Object
	loads []elfreloc.Segment // PT_LOAD, by address
	maps  []Mapping          // by address
	// anonymous reports that it has bytes of memory that belonged to no file: what the process had written was dumped.
	anonymous bool
}

// OpenCore opens a core file. The files that were mapped are read at their paths, and have to have the
// build IDs that they had. An error is an *elfreloc.Error. What is wrong with one of these files
// is in Module.Note. Close the process.
func OpenCore(path string) (*Process, error) {
	p := &Process{name: path}
	if err := p.openCore(path); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

func (p *Process) openCore(path string) error {
	o, _, err := p.openELF(path, path)
	if errors.Is(err, errNotRegular) {
		return p.error(errors.New("is not a regular file"))
	}
	if err != nil {
		return err
	}
	if o.Type != elf.ET_CORE {
		return p.error(fmt.Errorf("is an ELF file of type %v, want a core file", o.Type))
	}
	p.core = &coreFile{Object: o}
	segments, err := o.Segments()
	if err != nil {
		return err
	}
	entry, err := p.readNotes(segments)
	if err != nil {
		return err
	}
	p.core.addMemory(segments)
	p.memory, p.maps = p.core, p.core.maps
	p.openModules()
	return p.findMain(func(m *Module) bool { return m.Start <= entry && entry < m.End })
}

// Types of notes of the owner CORE.
const (
	noteAuxv = 6          // NT_AUXV
	noteFile = 0x46494c45 // NT_FILE
)

// The keys of the auxiliary vector.
const (
	auxPage  = 6 // AT_PAGESZ
	auxEntry = 9 // AT_ENTRY
)

// readNotes reads the mappings of files and the page size, and returns the address at which the program began.
func (p *Process) readNotes(segments []elfreloc.Segment) (entry uint64, err error) {
	c := p.core
	left, hasFiles := uint64(c.Size()), false
	p.page = uint64(os.Getpagesize())
	for _, s := range segments {
		if s.Type != elf.PT_NOTE {
			continue
		}
		if s.Filesz > left {
			return 0, p.error(fmt.Errorf("is truncated, or has notes that overlap: a segment of %#x bytes at %#x", s.Filesz, s.Offset))
		}
		left -= s.Filesz
		data, err := c.ReadFile(int64(s.Offset), int64(s.Filesz))
		if err != nil {
			return 0, err
		}
		for n, err := range c.Encoding.Notes(data, s.Align) {
			switch {
			case err != nil:
				return 0, p.error(err)
			case !bytes.Equal(bytes.TrimRight(n.Owner, "\x00"), []byte("CORE")):
			case n.Type == noteAuxv:
				entry = c.auxiliary(n.Desc, auxEntry)
				if page := c.auxiliary(n.Desc, auxPage); page != 0 && page&(page-1) == 0 {
					p.page = page
				}
			case n.Type == noteFile && !hasFiles:
				hasFiles = true
				if err := c.readFiles(n.Desc); err != nil {
					return 0, p.error(fmt.Errorf("its list of mapped files: %w", err))
				}
			}
		}
	}
	if !hasFiles {
		return 0, p.error(errors.New("has no list of mapped files (NT_FILE), so nothing tells which programs and libraries were loaded"))
	}
	return entry, nil
}

// auxiliary returns a value of the auxiliary vector, 0 if it is not there.
func (c *coreFile) auxiliary(vector []byte, key uint64) uint64 {
	word := c.Encoding.Word()
	for ; len(vector) >= 2*word; vector = vector[2*word:] {
		if c.Encoding.GetWord(vector) == key {
			return c.Encoding.GetWord(vector[word:])
		}
	}
	return 0
}

// readFiles reads NT_FILE: a count, a unit, then for each mapping its start, its end and its offset in the file
// in units; then the paths, each with a NUL behind it. The unit is a page of Linux, or a byte of gdb.
func (c *coreFile) readFiles(desc []byte) error {
	word := uint64(c.Encoding.Word())
	get := func(i uint64) uint64 { return c.Encoding.GetWord(desc[i*word:]) }
	if uint64(len(desc)) < 2*word {
		return errors.New("has no header")
	}
	count, unit := get(0), get(1)
	if count > (uint64(len(desc))/word-2)/3 {
		return fmt.Errorf("%d mappings in %d bytes", count, len(desc))
	}
	if unit == 0 {
		return errors.New("its unit is 0")
	}
	paths, numbers := desc[(2+3*count)*word:], map[string]uint64{}
	for i := range count {
		path, after, ok := bytes.Cut(paths, []byte{0})
		if !ok {
			return errors.New("a path has no end")
		}
		paths = after
		start, end, offset := get(2+3*i), get(3+3*i), get(4+3*i)
		if start >= end || len(c.maps) > 0 && start < c.maps[len(c.maps)-1].End || offset > 1<<62/unit {
			return fmt.Errorf("a mapping at %#x makes no sense", start)
		}
		if numbers[string(path)] == 0 {
			numbers[string(path)] = uint64(len(numbers) + 1)
		}
		c.maps = append(c.maps, Mapping{Start: start, End: end, Offset: offset * unit, Path: string(path),
			file: fileID{inode: numbers[string(path)]}, unknown: true})
	}
	return nil
}

// addMemory adds the segments, and maps what belongs to no file. A segment that overlaps another is left out.
func (c *coreFile) addMemory(segments []elfreloc.Segment) {
	for _, s := range segments {
		if s.Type == elf.PT_LOAD && s.Memsz > 0 && s.Vaddr+s.Memsz > s.Vaddr {
			c.loads = append(c.loads, s)
		}
	}
	slices.SortStableFunc(c.loads, func(a, b elfreloc.Segment) int { return cmp.Compare(a.Vaddr, b.Vaddr) })
	end := uint64(0)
	c.loads = slices.DeleteFunc(c.loads, func(s elfreloc.Segment) bool {
		overlaps := s.Vaddr < end
		end = max(end, s.Vaddr+s.Memsz)
		return overlaps
	})
	files, next := c.maps, 0
	for _, s := range c.loads {
		for next < len(files) && files[next].End <= s.Vaddr {
			next++
		}
		executable, isFile := s.Flags&elf.PF_X != 0, false
		for i := next; i < len(files) && files[i].Start < s.Vaddr+s.Memsz; i++ {
			isFile, files[i].unknown = true, false
			files[i].Executable = files[i].Executable || executable
		}
		if !isFile {
			c.maps = append(c.maps, Mapping{Start: s.Vaddr, End: s.Vaddr + s.Memsz, Executable: executable})
			c.anonymous = c.anonymous || s.Filesz > 0
		}
	}
	slices.SortFunc(c.maps, func(a, b Mapping) int { return cmp.Compare(a.Start, b.Start) })
}

// errNotDumped is of memory that was mapped, and of which the core file has no bytes.
var errNotDumped = errors.New("is not in the core file")

// ReadAt implements io.ReaderAt, by address.
func (c *coreFile) ReadAt(b []byte, address int64) (int, error) {
	for done := 0; ; {
		at := uint64(address) + uint64(done)
		i := sort.Search(len(c.loads), func(i int) bool { return c.loads[i].Vaddr+c.loads[i].Memsz > at })
		if i == len(c.loads) || at < c.loads[i].Vaddr || at-c.loads[i].Vaddr >= c.loads[i].Filesz {
			return done, errNotDumped
		}
		s := &c.loads[i]
		want := min(uint64(len(b)-done), s.Filesz-(at-s.Vaddr))
		data, err := c.ReadFile(int64(s.Offset+(at-s.Vaddr)), int64(want))
		if err != nil {
			return done, fmt.Errorf("the core file is truncated: %w", err)
		}
		if done += copy(b[done:], data); done == len(b) {
			return done, nil
		}
	}
}

// unwritten reads n bytes that a core file lacks, because the process had not written to them: Linux and gdb leave
// these to the file that was mapped. That this is the reason is known if the core file has memory of no
// file.
func (p *Process) unwritten(a Addr, n uint64) ([]byte, error) {
	m, module := p.mapping(a.Offset), p.Module(a.Offset)
	if !p.core.anonymous || m == nil || m.file == (fileID{}) || module == nil || module.Source != FromPath || n > m.End-a.Offset {
		return nil, p.errorAt(a.Offset, "%w", errNotDumped)
	}
	return module.Object.ReadFile(int64(m.Offset+(a.Offset-m.Start)), int64(n))
}
