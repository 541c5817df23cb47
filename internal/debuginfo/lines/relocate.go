package lines

import (
	"debug/elf"
	"encoding/binary"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// placeSections gives each section of code addresses that no other has, since in
// an object every section begins at 0. It returns the first of each, and all of
// them.
//
// Other than Object.Code it takes sections without contents for code: this may be
// the debug file of an object, where all are of SHT_NOBITS.
func placeSections(o *elfreloc.Object) (base map[int]uint64, code elfreloc.Code) {
	const page = 1 << 12
	base = make(map[int]uint64)
	next := uint64(page)
	for i := range o.Sections {
		// What is larger than all addresses is in no file that can be linked.
		if s := &o.Sections[i]; s.Flags&elf.SHF_EXECINSTR != 0 && s.Size < 1<<47 && next < 1<<48 {
			base[i] = next
			if s.Size > 0 {
				code = append(code, elfreloc.CodeRange{Start: next, End: next + s.Size})
			}
			next += (s.Size + 2*page - 1) &^ (page - 1)
		}
	}
	return base, code
}

// relocator returns a function that applies the relocations of a debug section to its bytes.
func relocator(o *elfreloc.Object, m arch.Machine, base map[int]uint64) func(index int, data []byte) error {
	return func(index int, data []byte) error {
		rels, err := o.RelocSections()
		if err != nil {
			return err
		}
		for _, rs := range rels {
			if rs.Target == index {
				if err := relocate(o, m, rs, data, base); err != nil {
					return err
				}
			}
		}
		return nil
	}
}

// relocate applies a section of relocations to the bytes of a debug section.
func relocate(o *elfreloc.Object, m arch.Machine, rs elfreloc.RelocSection, data []byte, base map[int]uint64) error {
	syms, err := o.Symbols()
	if err != nil {
		return err
	}
	return o.EachRelocation(rs, func(_ int, r elfreloc.Relocation) error {
		rel := m.Traits().DataReloc(r.Type)
		if rel.Size == 0 || r.Offset > uint64(len(data)) {
			return nil
		}
		field := begin(data[r.Offset:], rel.Size)
		if field == nil {
			return nil
		}
		sym := syms.At(int(r.Sym))
		value := base[sym.Section] + sym.Value + uint64(r.Addend)
		old := get(o, rel.Size, field)
		switch {
		case rel.Op == arch.Add:
			value = old + value
		case rel.Op == arch.Sub:
			value = old - value
		case r.Implicit:
			value += old
		}
		put(o, rel.Size, field, value)
		return nil
	})
}

// begin returns the field of a size that data begins with, nil where data ends before it
// does.
func begin(data []byte, size int) []byte {
	if size == arch.ULEB128 {
		size = 1 + slices.IndexFunc(data[:min(len(data), binary.MaxVarintLen64)], func(b byte) bool { return b < 0x80 })
	}
	if size == 0 || size > len(data) {
		return nil
	}
	return data[:size]
}

func get(o *elfreloc.Object, size int, b []byte) uint64 {
	switch size {
	case arch.ULEB128:
		value, _ := binary.Uvarint(b)
		return value
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(o.Encoding.Order.Uint16(b))
	case 4:
		return uint64(o.Encoding.Order.Uint32(b))
	}
	return o.Encoding.Order.Uint64(b)
}

func put(o *elfreloc.Object, size int, b []byte, v uint64) {
	switch size {
	case arch.ULEB128: // whose length stays, whatever the value takes
		for i := range b {
			b[i] = b[i]&0x80 | byte(v>>(7*i))&0x7f
		}
	case 1:
		b[0] = byte(v)
	case 2:
		o.Encoding.Order.PutUint16(b, uint16(v))
	case 4:
		o.Encoding.Order.PutUint32(b, uint32(v))
	default:
		o.Encoding.Order.PutUint64(b, v)
	}
}
