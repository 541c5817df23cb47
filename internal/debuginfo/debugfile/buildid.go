package debugfile

import (
	"debug/elf"

	"sdtconvert/elfreloc"
)

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
	left := uint64(allNotes)
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.Type != elf.SHT_NOTE || s.Size > min(noteLimit, left) {
			continue
		}
		left -= s.Size
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		if id := findBuildID(data, o.Encoding, s.Align); id != nil {
			return id, nil
		}
	}
	if len(o.Sections) > 0 {
		return nil, nil
	}
	segments, err := o.Segments()
	if err != nil {
		return nil, err
	}
	for _, s := range segments {
		if s.Type != elf.PT_NOTE || s.Filesz > min(noteLimit, left) || s.Offset > 1<<62 {
			continue
		}
		left -= s.Filesz
		data, err := o.ReadFile(int64(s.Offset), int64(s.Filesz))
		if err != nil {
			return nil, err
		}
		if id := findBuildID(data, o.Encoding, s.Align); id != nil {
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
