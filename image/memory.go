package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/debuginfo/debugfile"
)

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
	id, err := debugfile.BuildID(o)
	if err != nil {
		return ""
	}
	return string(id)
}

var errEnded = errors.New("the process has ended, or runs another program now")
