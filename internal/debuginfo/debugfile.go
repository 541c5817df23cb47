package debuginfo

// A separate debug file of an image is found as gdb finds it: the file that keeps the symbols
// and the debug information that were stripped.
//
// It is looked for, under each root, by the build id of the image, and then by
// the name in its .gnu_debuglink: beside the image, in .debug there, and under
// each root in the image's directory (gdb's manual, "Separate Debug Files").
//
// The name comes from an untrusted file. So it has to be a plain
// name, what it leads to a regular file, and that file's build id and checksum
// the image's.

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/paths"
	"sdtconvert/internal/regular"
)

// debugRoots are the directories that distributions install debug files to.
var debugRoots = []string{"/usr/lib/debug"}

// DebugFile is an open debug file. Its owner closes it.
type DebugFile struct {
	*elfreloc.Object
	Path string

	file *regular.File
}

// Close closes the file. What was read of the Object stays.
func (f *DebugFile) Close() error { return f.file.Close() }

// OpenDebugFile opens the debug file of an image, which is nil when there is none. path
// is where the image itself is; without it a .gnu_debuglink is of no use. nil
// for roots means debugRoots.
//
// An error says why files with the right names are not the image's. A caller may
// show it and go on without.
func OpenDebugFile(image *elfreloc.Object, path string, roots []string) (*DebugFile, error) {
	return OpenDebugFileBelow("", image, path, roots)
}

// OpenDebugFileBelow is OpenDebugFile for an image whose path is that of a process with another root: the names are those of
// that process, and no link leads out of the root.
func OpenDebugFileBelow(root string, image *elfreloc.Object, path string, roots []string) (*DebugFile, error) {
	if roots == nil {
		roots = debugRoots
	}
	id, err := BuildID(image)
	if err != nil {
		return nil, err
	}
	s := &fileSearch{root: root, image: image, path: path, id: id}
	for _, name := range byBuildID(id, roots) {
		if f := s.try(name, nil); f != nil {
			return f, nil
		}
	}
	link, err := debugLink(image)
	if err != nil {
		return nil, errors.Join(append(s.refused, err)...)
	}
	if link == nil || path == "" {
		return nil, errors.Join(s.refused...)
	}
	for _, name := range byLink(link.name, path, roots) {
		if f := s.try(name, &link.checksum); f != nil {
			return f, nil
		}
	}
	return nil, errors.Join(s.refused...)
}

// byBuildID returns where files of a build id are installed.
func byBuildID(id []byte, roots []string) (names []string) {
	if len(id) < 2 {
		return nil
	}
	for _, root := range roots {
		names = append(names, paths.Join(root, filepath.FromSlash(fmt.Sprintf(".build-id/%x/%x.debug", id[:1], id[1:]))))
	}
	return names
}

// byLink returns where a file may be that the image at path links to: first by the
// path as given, and then by where its symbolic links lead.
func byLink(link, path string, roots []string) (names []string) {
	var directories []string
	if absolute, err := paths.Absolute(path); err == nil {
		directories = append(directories, paths.Directory(absolute))
		if real, err := paths.Real(path); err == nil && paths.Directory(real) != directories[0] {
			directories = append(directories, paths.Directory(real))
		}
	}
	for _, directory := range directories {
		names = append(names, paths.Join(directory, link), paths.Join(paths.Join(directory, ".debug"), link))
		for _, root := range roots {
			names = append(names, paths.Join(root+directory[len(filepath.VolumeName(directory)):], link))
		}
	}
	return names
}

// link is what .gnu_debuglink holds.
type link struct {
	name     string
	checksum uint32 // CRC-32 of the debug file
}

// debugLink reads .gnu_debuglink: a name that ends in NUL, zeros up to a
// multiple of four bytes, and the checksum.
func debugLink(o *elfreloc.Object) (*link, error) {
	for i := range o.Sections {
		if o.Sections[i].Name != ".gnu_debuglink" {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		end := bytes.IndexByte(data, 0)
		if end < 0 || len(data) < (end+4)&^3+4 {
			return nil, o.SectionError(i, fmt.Errorf("%d bytes are too few for a name and checksum", len(data)))
		}
		name := string(data[:end])
		if name == "." || name == ".." || name != filepath.Base(name) {
			return nil, o.SectionError(i, fmt.Errorf("%q is not a plain file name", name))
		}
		return &link{name, o.Encoding.Order.Uint32(data[(end+4)&^3:])}, nil
	}
	return nil, nil
}

// fileSearch is the search for the debug file of one image.
type fileSearch struct {
	root    string // of the process whose names are searched for, "" for ours
	image   *elfreloc.Object
	path    string
	id      []byte
	refused []error
}

// try opens a file if it is there and the image's. Its checksum is compared
// unless that is nil.
func (s *fileSearch) try(name string, checksum *uint32) *DebugFile {
	file, err := s.open(name)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ENOTDIR) && !regular.IsType(err) {
			s.refused = append(s.refused, fmt.Errorf("debug file %w", err))
		}
		return nil
	}
	if self, err := os.Stat(s.path); s.root == "" && err == nil && os.SameFile(self, file.Info) {
		file.Close()
		return nil
	}
	o, err := s.check(file, checksum)
	if err != nil {
		file.Close()
		s.refused = append(s.refused, fmt.Errorf("debug file %w", err))
		return nil
	}
	return &DebugFile{o, name, file}
}

func (s *fileSearch) open(name string) (*regular.File, error) {
	if s.root != "" {
		return regular.OpenBelow(s.root, name, name)
	}
	return regular.Open(name)
}

// check returns the object of a file if it is the image's.
func (s *fileSearch) check(file *regular.File, checksum *uint32) (*elfreloc.Object, error) {
	name := file.Path
	o, err := elfreloc.Open(file, file.Info.Size(), name)
	if err != nil {
		return nil, err
	}
	if o.Machine != s.image.Machine || o.Encoding != s.image.Encoding || o.Type != s.image.Type {
		return nil, fmt.Errorf("%s: a %v for %v, want a %v for %v", name, o.Type, o.Machine, s.image.Type, s.image.Machine)
	}
	id, err := BuildID(o)
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(id, s.id) && (checksum == nil || len(id) > 0 && len(s.id) > 0) {
		return nil, fmt.Errorf("%s: build id %x, want %x", name, id, s.id)
	}
	if checksum != nil {
		if err := o.CheckRead(0, o.Size()); err != nil {
			return nil, err
		}
		sum := crc32.NewIEEE()
		if _, err := io.Copy(sum, io.NewSectionReader(file, 0, o.Size())); err != nil {
			return nil, err
		}
		if sum.Sum32() != *checksum {
			return nil, fmt.Errorf("%s: CRC-32 %#08x, want %#08x", name, sum.Sum32(), *checksum)
		}
	}
	return o, nil
}

// noteLimit bounds the notes that are read at once, and allNotes those that are read of
// an image, in bytes: in a hostile one sections and segments share their bytes.
const noteLimit, allNotes = 1 << 20, 16 << 20

// BuildID returns the build id of an image: what the linker has made of its
// contents, so that two files with the same one come from the same link. It is
// nil when there is none.
//
// It stands in a note of the owner "GNU" (gABI, chapter 5, "Note Section"),
// found by section headers, else by program headers. A note that is cut off is
// none; what cannot be read of the file is an error. The bytes are the caller's to
// keep, not to modify.
func BuildID(o *elfreloc.Object) ([]byte, error) {
	type notes struct{ offset, size, align uint64 }
	var all []notes
	for i := range o.Sections {
		if s := &o.Sections[i]; s.Type == elf.SHT_NOTE && s.InFile() {
			all = append(all, notes{s.Offset, s.Size, s.Align})
		}
	}
	if len(o.Sections) == 0 {
		segments, err := o.Segments()
		if err != nil {
			return nil, err
		}
		for _, s := range segments {
			if s.Type == elf.PT_NOTE && s.Offset <= 1<<62 {
				all = append(all, notes{s.Offset, s.Filesz, s.Align})
			}
		}
	}
	left := uint64(allNotes)
	for _, n := range all {
		if n.size > min(noteLimit, left) {
			continue
		}
		left -= n.size
		data, err := o.ReadFile(int64(n.offset), int64(n.size))
		if err != nil {
			return nil, err
		}
		if id := findBuildID(data, o.Encoding, n.align); id != nil {
			return id, nil
		}
	}
	return nil, nil
}

// findBuildID looks through notes.
func findBuildID(notes []byte, e elfreloc.Encoding, align uint64) []byte {
	for n, err := range e.Notes(notes, align) {
		const typ = 3 // NT_GNU_BUILD_ID
		if err == nil && n.Type == typ && len(n.Desc) > 0 && string(n.Owner) == "GNU\x00" {
			return n.Desc
		}
	}
	return nil
}
