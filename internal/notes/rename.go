package notes

import (
	"bytes"
	"errors"
	"slices"

	"sdtconvert/elfreloc"
)

// Rename returns notes that AddStapsdt has written with other providers and names, and what moves an offset in the old ones to the new
// ones; nil if all names stay.
func Rename(encoding elfreloc.Encoding, data []byte, name func(provider, name string) (newProvider, newName string, err error)) (renamed []byte, moved func(uint64) uint64, err error) {
	type start struct{ old, now uint64 } // of the descriptor of a note
	starts, changed, words := []start{}, false, 3*encoding.Word()
	made := &sectionNotes{layout: encoding}
	for n, err := range encoding.Notes(data, noteAlign) {
		if err != nil {
			return nil, nil, err
		}
		if n.Type != stapsdtType || string(n.Owner) != stapsdtOwner+"\x00" || len(n.Desc) < words {
			return nil, nil, errors.New("a note of another kind among those of a conversion")
		}
		parts := bytes.SplitN(n.Desc[words:], []byte{0}, 3)
		if len(parts) < 3 {
			return nil, nil, errors.New("a string of a note has no end")
		}
		oldProvider, oldName := string(parts[0]), string(parts[1])
		newProvider, newName, err := name(oldProvider, oldName)
		if err != nil {
			return nil, nil, err
		}
		changed = changed || newProvider != oldProvider || newName != oldName
		made.add(stapsdtOwner, stapsdtType, func(s *sectionNotes) {
			starts = append(starts, start{n.Offset, uint64(len(s.data))})
			s.data = append(s.data, n.Desc[:words]...)
			s.string(newProvider)
			s.string(newName)
			s.data = append(s.data, parts[2]...) // with its NUL
		})
	}
	if !changed {
		return nil, nil, nil
	}
	return made.data, func(offset uint64) uint64 {
		i, found := slices.BinarySearchFunc(starts, offset, func(s start, offset uint64) int { return int(int64(s.old) - int64(offset)) })
		if !found {
			i--
		}
		if i < 0 {
			return offset
		}
		return offset - starts[i].old + starts[i].now
	}, nil
}
