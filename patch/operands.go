package patch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
)

// A nop takes no arguments anywhere: they stay where the compiler has them, which it
// tells in a section that no linker puts into an image. docs/records.md is the contract
// with tools that write it.

// OperandsSection is the name of the sections that say where the arguments of marked
// nops are (arch.Nop).
const OperandsSection = ".sdt_operands"

// longestOperands is how many bytes the operands of a site may have. Those of twelve
// arguments have a few hundred, if none is named by a mangled name.
const longestOperands = 4096

// fixOperands is what to do about a nop without an entry.
const fixOperands = "let the assembly that marks it write an entry of " + OperandsSection + ", and strip none"

// fixDropped is what to do about an object without any entry.
const fixDropped = "a tool has dropped that section, as ld -r --gc-sections does: use -r through sdtconvert, or without --gc-sections"

// operandTexts are the operands of marked NOPs, by the address of the NOP: nil until an entry
// is found.
type operandTexts map[image.Addr]*string

// findOperands finds the operands of the places that are asked for. What else is in the sections,
// as of sites that were converted before or that a linker has dropped, is passed over,
// but has to make sense.
func (s *Scan) findOperands(found operandTexts) error {
	o := s.Object
	rels, err := o.RelocSections()
	if err != nil {
		return err
	}
	bySection := map[int][]*elfreloc.RelocSection{}
	for i := range rels {
		if target := rels[i].Target; o.Sections[target].Name == OperandsSection {
			bySection[target] = append(bySection[target], &rels[i])
		}
	}
	for i := range o.Sections {
		if sec := &o.Sections[i]; sec.Name == OperandsSection && sec.InFile() {
			if err := s.readEntries(i, bySection[i], found); err != nil {
				return err
			}
		}
	}
	return nil
}

// readEntries reads a section of operands: entries of a word, which a relocation makes the
// address of a site, and a string.
func (s *Scan) readEntries(sec int, rels []*elfreloc.RelocSection, found operandTexts) error {
	o := s.Object
	data, err := o.Data(sec)
	if err != nil {
		return err
	}
	word := o.Encoding.Word()
	maxEntries := len(data) / (word + 1)
	var sites []elfreloc.Relocation
	for _, rs := range rels {
		err := o.EachRelocation(*rs, func(_ int, r elfreloc.Relocation) error {
			if len(sites) == maxEntries {
				return o.SectionError(rs.Index, fmt.Errorf("more than %d relocations of entries in %d bytes of %s", maxEntries, len(data), OperandsSection))
			}
			sites = append(sites, r)
			return nil
		})
		if err != nil {
			return err
		}
	}
	slices.SortStableFunc(sites, func(a, b elfreloc.Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
	for at := 0; at < len(data); {
		if len(sites) == 0 || sites[0].Offset != uint64(at) {
			return o.OffsetError(sec, uint64(at), fmt.Errorf("no relocation for the address of a site; want entries of a word and a string, without padding"))
		}
		r := sites[0]
		sites = sites[1:]
		if r.Implicit && len(data)-at >= word {
			r.Addend = int64(o.Encoding.GetWord(data[at:]))
		}
		text, err := operandsAt(data[at:], word)
		if err == nil {
			err = s.addOperands(r, text, found)
		}
		if err != nil {
			return o.OffsetError(sec, uint64(at), err)
		}
		at += word + len(text) + 1
	}
	if len(sites) > 0 {
		return o.OffsetError(sec, sites[0].Offset, fmt.Errorf("a relocation that is of no entry"))
	}
	return nil
}

// operandsAt returns the string behind the word that an entry begins with.
func operandsAt(entry []byte, word int) ([]byte, error) {
	if len(entry) <= word {
		return nil, fmt.Errorf("an entry that the section's end cuts off after %d bytes", len(entry))
	}
	text, _, ended := bytes.Cut(entry[word:], []byte{0})
	switch bad := bytes.IndexFunc(text, func(c rune) bool { return c < ' ' || c > '~' }); {
	case !ended:
		return nil, fmt.Errorf("operands without a NUL behind them")
	case len(text) > longestOperands:
		return nil, fmt.Errorf("operands of %d bytes, want at most %d", len(text), longestOperands)
	case bad >= 0:
		return nil, fmt.Errorf("byte %#02x in operands, want printable ASCII", text[bad])
	}
	return text, nil
}

// addOperands takes the operands of a site, if they are asked for.
func (s *Scan) addOperands(r elfreloc.Relocation, text []byte, found operandTexts) error {
	traits := s.Machine.Traits()
	if r.Type == traits.None || r.Sym == 0 {
		return nil // a linker has dropped the site
	}
	if r.Type != traits.Word {
		return fmt.Errorf("relocation %s, want %s", s.Machine.RelocName(r.Type), s.Machine.RelocName(traits.Word))
	}
	syms, err := s.Object.Symbols()
	if err != nil {
		return err
	}
	sym := syms.At(int(r.Sym))
	if sym.Section <= 0 || sym.Section >= len(s.Object.Sections) {
		return fmt.Errorf("the address of %q, which is in no section of the object; want a site's", sym.Name)
	}
	sec, at := &s.Object.Sections[sym.Section], image.Addr{Section: sym.Section, Offset: sym.Value + uint64(r.Addend)}
	if at.Offset >= sec.Size {
		return fmt.Errorf("the address %s+%#x, beyond the section's %d bytes; want a site's", sec.Name, at.Offset, sec.Size)
	}
	old, wanted := found[at]
	if old != nil {
		return fmt.Errorf("a second entry for the site at %s+%#x", sec.Name, at.Offset)
	}
	if wanted {
		operands := traits.Arguments.AsTracersRead(string(text))
		found[at] = &operands
	}
	return nil
}

// readOperands finds the operands of calls that are marks.
func (s *Scan) readOperands() (operandTexts, error) {
	if !s.hasMarks() {
		return nil, nil
	}
	none, found := s.Machine.Traits().None, operandTexts{}
	for i := range s.Calls {
		if c := &s.Calls[i]; c.Reloc.Type == none {
			found[c.addr()] = nil
		}
	}
	return found, s.findOperands(found)
}

// hasOperands reports whether the object has any entry.
func (s *Scan) hasOperands() bool {
	return slices.ContainsFunc(s.Object.Sections, func(sec elfreloc.Section) bool { return sec.Name == OperandsSection && sec.Size > 0 })
}

// UnconvertedSection is the name of the sections in which assembly that marks NOPs says of
// which probes: strings, each "_" and an id. Conversions empty them, so that linkers put those of
// other objects alone into an image.
const UnconvertedSection = ".sdt_unconverted"

// CheckMarks returns an *elfreloc.Error for an object that has tracepoints and no stub: a tool has renamed its symbols
// (objcopy --prefix-symbols), and no conversion would find them.
func CheckMarks(o *elfreloc.Object) error {
	marked := slices.IndexFunc(o.Sections, func(s elfreloc.Section) bool { return s.Name == UnconvertedSection && s.Size > 0 })
	if marked < 0 {
		return nil
	}
	if hasStub, err := DefaultNames().HasStub(o); hasStub || err != nil {
		return err
	}
	return o.SectionError(marked, errors.New("holds tracepoints, and no symbol of a stub: its symbols were renamed; convert the object before objcopy renames them"))
}

// OperandsAt returns the operands of marked nops, of those of the given places that have an
// entry in OperandsSection. They stay there when an object is converted.
func (s *Scan) OperandsAt(at []image.Addr) (map[image.Addr]string, error) {
	found := operandTexts{}
	for _, a := range at {
		found[a] = nil
	}
	if err := s.findOperands(found); err != nil {
		return nil, err
	}
	texts := map[image.Addr]string{}
	for _, a := range at {
		if text := found[a]; text != nil {
			texts[a] = *text
		}
	}
	return texts, nil
}
