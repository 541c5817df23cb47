package stubs

import (
	"fmt"

	"sdtconvert/elfreloc"
)

// ntGNUProperty is NT_GNU_PROPERTY_TYPE_0.
const ntGNUProperty = 5

// addFeatures keeps of what all objects promise what this one promises too. An
// object that promises less than the others would take it from the whole link.
func (n *Need) addFeatures(o *elfreloc.Object) error {
	if n.machine == nil {
		return nil
	}
	f := n.machine.Traits().Features
	has := uint32(0)
	for i := range o.Sections {
		if o.Sections[i].Name != ".note.gnu.property" || !o.Sections[i].InFile() {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return err
		}
		bits, ok := features(o.Layout, data, f.Property)
		if !ok {
			return o.SectionError(i, fmt.Errorf("makes no sense"))
		}
		has |= bits
	}
	if n.objects == 0 {
		n.features = f.Known
	}
	n.features &= has
	return nil
}

// features finds a property in notes (Linux gABI extensions, "Program Property").
func features(l elfreloc.Layout, notes []byte, property uint32) (bits uint32, ok bool) {
	for len(notes) > 0 {
		const header = 12
		if len(notes) < header {
			return 0, false
		}
		namesz, descsz, typ := l.Order.Uint32(notes), l.Order.Uint32(notes[4:]), l.Order.Uint32(notes[8:])
		name, rest, ok := cut(notes[header:], namesz, 4)
		if !ok {
			return 0, false
		}
		desc, rest, ok := cut(rest, descsz, l.Word())
		if !ok {
			return 0, false
		}
		notes = rest
		if typ != ntGNUProperty || string(name) != "GNU\x00" {
			continue
		}
		for len(desc) > 0 {
			if len(desc) < 8 {
				return 0, false
			}
			what, size := l.Order.Uint32(desc), l.Order.Uint32(desc[4:])
			var value []byte
			if value, desc, ok = cut(desc[8:], size, l.Word()); !ok {
				return 0, false
			}
			if what == property && len(value) == 4 {
				bits |= l.Order.Uint32(value)
			}
		}
	}
	return bits, true
}

// cut takes n bytes, and what pads them to a multiple of align; at the end the
// padding may be missing.
func cut(b []byte, n uint32, align int) (first, rest []byte, ok bool) {
	if uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	padded := int(n) + -int(n)&(align-1)
	return b[:n], b[min(padded, len(b)):], true
}
