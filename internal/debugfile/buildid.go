package debugfile

import (
	"debug/elf"

	"sdtconvert/elfreloc"
)

// BuildID returns the build id of an image: what the linker has made of its
// contents, so that two files with the same one come from the same link. It is
// nil when there is none.
//
// It stands in a note of the owner "GNU" (gABI, chapter 5, "Note Section"),
// found by section headers, else by program headers.
func BuildID(o *elfreloc.Object) ([]byte, error) {
	for i := range o.Sections {
		if o.Sections[i].Type != elf.SHT_NOTE {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		if id := findBuildID(o, data); id != nil {
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
		if s.Type != elf.PT_NOTE || s.Offset+s.Filesz > 1<<62 {
			continue
		}
		data, err := o.ReadFile(int64(s.Offset), int64(s.Filesz))
		if err != nil {
			return nil, err
		}
		if id := findBuildID(o, data); id != nil {
			return id, nil
		}
	}
	return nil, nil
}

// findBuildID looks through notes: the sizes of owner and contents, the type,
// and both, padded. Notes of 8-byte alignment pad alike up to a build id, which
// no linker puts behind a property note.
func findBuildID(o *elfreloc.Object, notes []byte) []byte {
	const header, typeBuildID, owner = 12, 3, "GNU\x00"
	order := o.Layout.Order
	for len(notes) >= header {
		nameSize, size := uint64(order.Uint32(notes)), uint64(order.Uint32(notes[4:]))
		typ := order.Uint32(notes[8:])
		notes = notes[header:]
		padded := (nameSize + 3) &^ 3
		if padded > uint64(len(notes)) || size > uint64(len(notes))-padded {
			return nil
		}
		if typ == typeBuildID && string(notes[:nameSize]) == owner && size > 0 {
			return notes[padded:][:size:size]
		}
		notes = notes[min(padded+(size+3)&^3, uint64(len(notes))):]
	}
	return nil
}
