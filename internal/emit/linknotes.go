package emit

// LinkNotes are what linkers ask of every object of a link: that it needs
// no executable stack, and what it promises of indirect branches. The program gets
// what all of them promise, so an object that is added to a link must promise no
// less than the others, and may promise no more.

import (
	"debug/elf"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// ntGNUProperty is NT_GNU_PROPERTY_TYPE_0.
const ntGNUProperty = 5

// LinkNotes are the promises that all objects have in common.
type LinkNotes struct {
	machine arch.Machine
	objects int
	bits    uint32
	any     uint32 // promises of any of them
}

// OfData returns the promises of an object without code, which keeps every one: what it
// did not promise the program would not.
func (c *LinkNotes) OfData(m arch.Machine) *LinkNotes {
	if m == nil {
		return &LinkNotes{}
	}
	return &LinkNotes{machine: m, objects: 1, bits: c.any | m.Traits().Features.Supported}
}

// Add takes in an object; m is nil for a machine that is not known.
func (c *LinkNotes) Add(o *elfreloc.Object, m arch.Machine) error {
	if m == nil {
		return nil
	}
	f := m.Traits().Features
	has := uint32(0)
	for i := range o.Sections {
		if o.Sections[i].Name != ".note.gnu.property" || !o.Sections[i].InFile() {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return err
		}
		bits, ok := featureBits(o.Encoding, data, f.Property)
		if !ok {
			return o.SectionError(i, fmt.Errorf("makes no sense"))
		}
		has |= bits
	}
	if c.objects == 0 {
		c.machine, c.bits = m, f.Supported
	}
	c.objects++
	c.bits &= has
	c.any |= has
	return nil
}

// merge takes in the objects of another.
func (c *LinkNotes) merge(added *LinkNotes) {
	if c.objects == 0 {
		*c = *added
		return
	}
	if added.objects > 0 {
		c.objects += added.objects
		c.bits &= added.bits
		c.any |= added.any
	}
}

// landingPad reports whether code has to begin with a landing pad.
func (c *LinkNotes) landingPad() bool {
	return c.bits != 0 && c.bits&c.machine.Traits().Features.LandingPad != 0
}

// Write writes the sections, for words of the given size.
func (c *LinkNotes) Write(a assembler, word int) {
	if c.bits != 0 {
		a.Section(Section{Name: ".note.gnu.property", Type: elf.SHT_NOTE, Flags: elf.SHF_ALLOC, Align: uint64(word)})
		const value = 4
		size := 8 + value
		a.Int(4) // of the name
		a.Int(uint32(size + -size&(word-1)))
		a.Int(ntGNUProperty)
		a.String("GNU")
		a.Int(c.machine.Traits().Features.Property)
		a.Int(value)
		a.Int(c.bits)
		a.Align(word)
	}
	a.Section(Section{Name: ".note.GNU-stack", Type: elf.SHT_PROGBITS, Align: 1})
}

// featureBits finds a property in notes (Linux gABI extensions, "Program Property").
func featureBits(l elfreloc.Encoding, notes []byte, property uint32) (bits uint32, ok bool) {
	for n, err := range l.Notes(notes, uint64(l.Word())) {
		if err != nil {
			return 0, false
		}
		if n.Type != ntGNUProperty || string(n.Owner) != "GNU\x00" {
			continue
		}
		desc := n.Desc
		for len(desc) > 0 {
			if len(desc) < 8 {
				return 0, false
			}
			what, size := l.Order.Uint32(desc), l.Order.Uint32(desc[4:])
			var value []byte
			if value, desc, ok = cutPadded(desc[8:], size, l.Word()); !ok {
				return 0, false
			}
			if what == property && len(value) == 4 {
				bits |= l.Order.Uint32(value)
			}
		}
	}
	return bits, true
}

// cutPadded takes n bytes, and what pads them to a multiple of align; at the end the
// padding may be missing.
func cutPadded(b []byte, n uint32, align int) (first, after []byte, ok bool) {
	if uint64(n) > uint64(len(b)) {
		return nil, nil, false
	}
	padded := int(n) + -int(n)&(align-1)
	return b[:n], b[min(padded, len(b)):], true
}
