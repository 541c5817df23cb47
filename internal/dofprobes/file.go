package dofprobes

import (
	"errors"
	"fmt"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/emit/dof"
	"sdtconvert/linkerset"
)

// file is one file of the format.
type file struct {
	im       image.Image
	addr     uint64 // of its first byte
	data     []byte
	text     string // the same
	left     uint64 // bytes of tables and strings that may yet be read
	sections []section
	relative map[uint64]bool // the fields, by offset, that hold a distance from themselves
	probes   []Probe
}

// section is a dof_sec_t.
type section struct {
	typ, entsize uint32
	offset, size uint64 // of what it holds, in the file
}

var errOverlap = errors.New("has tables that overlap many times")

// reread is how often a file is read at most, in all. DTrace's have nothing that overlaps.
const reread = 4

func (f *file) read() ([]Probe, error) {
	f.text, f.left, f.relative = string(f.data), reread*uint64(len(f.data)), map[uint64]bool{}
	if err := f.readSections(); err != nil {
		return nil, err
	}
	for _, s := range f.sections {
		if s.typ == dof.SectURelHdr {
			if err := f.relocations(s); err != nil {
				return nil, err
			}
		}
	}
	for _, s := range f.sections {
		if s.typ == dof.SectProvider {
			if err := f.provider(s); err != nil {
				return f.probes, err
			}
		}
	}
	return f.probes, nil
}

func (f *file) u16(at uint64) uint16 { return f.im.Encoding().Order.Uint16(f.data[at:]) }
func (f *file) u32(at uint64) uint32 { return f.im.Encoding().Order.Uint32(f.data[at:]) }
func (f *file) u64(at uint64) uint64 { return f.im.Encoding().Order.Uint64(f.data[at:]) }

// take counts bytes of tables.
func (f *file) take(n uint64) error {
	if n > f.left {
		return errOverlap
	}
	f.left -= n
	return nil
}

// readSections reads the headers of sections (dofh_secoff, dofh_secnum and dofh_secsize).
func (f *file) readSections() error {
	size := uint64(len(f.data))
	entry, n, start := uint64(f.u32(24)), uint64(f.u32(28)), f.u64(32)
	if entry < dof.SectionSize || start > size || n > (size-start)/entry {
		return fmt.Errorf("has %d headers of sections of %d bytes at %#x", n, entry, start)
	}
	for i := range n {
		at := start + i*entry
		s := section{typ: f.u32(at), entsize: f.u32(at + 12), offset: f.u64(at + 16), size: f.u64(at + 24)}
		if s.offset > size || s.size > size-s.offset {
			return fmt.Errorf("has a section of %d bytes at %#x, behind its end", s.size, s.offset)
		}
		f.sections = append(f.sections, s)
	}
	return nil
}

// section finds the one of a type that a dof_secidx_t names.
func (f *file) section(index, typ uint32) (section, error) {
	if uint64(index) >= uint64(len(f.sections)) || f.sections[index].typ != typ {
		return section{}, fmt.Errorf("names section %d, which is not of type %d", index, typ)
	}
	return f.sections[index], nil
}

// table is section, for one with entries of a size at least.
func (f *file) table(index, typ, size uint32) (section, error) {
	s, err := f.section(index, typ)
	if err == nil && s.entsize < size {
		err = fmt.Errorf("has entries of %d bytes in section %d", s.entsize, index)
	}
	return s, err
}

// relocations reads a dof_relohdr_t and its dof_relodesc_t.
func (f *file) relocations(s section) error {
	if s.size < 12 {
		return fmt.Errorf("has a header of relocations of %d bytes", s.size)
	}
	list, err := f.table(f.u32(s.offset+4), dof.SectRelTab, dof.RelocSize)
	if err != nil {
		return err
	}
	target, err := f.section(f.u32(s.offset+8), dof.SectProbes)
	if err != nil {
		return err
	}
	if err := f.take(list.size); err != nil {
		return err
	}
	for off := uint64(0); off+uint64(list.entsize) <= list.size; off += uint64(list.entsize) {
		at := list.offset + off
		if dof.Relocation(f.u32(at+4)) == dof.Relative {
			f.relative[target.offset+f.u64(at+8)] = true
		}
	}
	return nil
}

// tables are the sections of a provider.
type tables struct {
	name                                    string
	strings, probes, args, offsets, enabled section
	known                                   map[types][]linkerset.Argument
}

// provider reads a dof_provider_t and its probes.
func (f *file) provider(s section) (err error) {
	if s.size < 44 {
		return fmt.Errorf("has a provider of %d bytes", s.size)
	}
	t := tables{known: map[types][]linkerset.Argument{}}
	at := s.offset
	for _, of := range []struct {
		into       *section
		at         uint64
		typ, entry uint32
	}{
		{&t.strings, 0, dof.SectStrtab, 0}, {&t.probes, 4, dof.SectProbes, dof.ProbeSize},
		{&t.args, 8, dof.SectPrArgs, 1}, {&t.offsets, 12, dof.SectPrOffs, 4},
	} {
		if *of.into, err = f.table(f.u32(at+of.at), of.typ, of.entry); err != nil {
			return err
		}
	}
	if index := f.u32(at + 40); index != 0 {
		if t.enabled, err = f.table(index, dof.SectPrEnOffs, 4); err != nil {
			return err
		}
	}
	if t.name, _, err = f.string(&t, uint64(f.u32(at+16))); err != nil {
		return err
	}
	if err := f.take(t.probes.size); err != nil {
		return err
	}
	for off := uint64(0); off+uint64(t.probes.entsize) <= t.probes.size; off += uint64(t.probes.entsize) {
		p, err := f.probe(&t, t.probes.offset+off)
		if err != nil {
			return err
		}
		f.probes = append(f.probes, p)
	}
	return nil
}

// string reads a string of a provider's, and returns the offset of what is behind it.
func (f *file) string(t *tables, off uint64) (s string, next uint64, err error) {
	if off < t.strings.size {
		text := f.text[t.strings.offset+off:][:t.strings.size-off]
		if n := strings.IndexByte(text, 0); n >= 0 {
			return text[:n], off + uint64(n) + 1, f.take(uint64(n) + 1)
		}
	}
	return "", 0, fmt.Errorf("has a string at %#x that does not end", off)
}

// probe reads the dof_probe_t at an offset.
func (f *file) probe(t *tables, at uint64) (p Probe, err error) {
	p.Provider = t.name
	if p.Function, _, err = f.string(t, uint64(f.u32(at+8))); err != nil {
		return p, err
	}
	if p.Name, _, err = f.string(t, uint64(f.u32(at+12))); err != nil {
		return p, err
	}
	if p.Args, err = f.arguments(t, at); err != nil {
		return p, err
	}
	start, err := f.start(at)
	if err != nil {
		return p, err
	}
	for _, of := range []struct {
		table    section
		first, n uint64
		kind     arch.Kind
	}{
		{t.offsets, uint64(f.u32(at + 28)), uint64(f.u16(at + 34)), arch.Probe},
		{t.enabled, uint64(f.u32(at + 36)), uint64(f.u16(at + 40)), arch.Enabled},
	} {
		if of.n > 0 && (of.first+of.n)*4 > of.table.size {
			return p, fmt.Errorf("has %d sites of %s at %d, behind their table", of.n, p.Name, of.first)
		}
		if err := f.take(of.n * 4); err != nil {
			return p, err
		}
		for i := range of.n {
			off := uint64(f.u32(of.table.offset + (of.first+i)*4))
			p.Sites = append(p.Sites, Site{start.Add(off), of.kind})
		}
	}
	return p, nil
}

// start returns where the function of a probe begins, as a linker has filled it in.
func (f *file) start(at uint64) (image.Addr, error) {
	field := image.Addr{Offset: f.addr + at}
	if f.relative[at] {
		return field.Add(f.u64(at)), nil
	}
	if f.im.Encoding().Word() != 8 { // a word is shorter than the field
		return image.Addr{Offset: f.u64(at)}, nil
	}
	ref, err := f.im.Word(field)
	return ref.Addr, err
}

// types are what a dof_probe_t says of the arguments of a probe. It is the same for all
// functions that have sites of it.
type types struct {
	native, translated uint32 // strings, one behind the other
	nativeN            byte
	translatedN        byte
	mapping            uint32 // which argument each translated one is, a byte each
}

// arguments reads what D programs see of the arguments of a probe.
func (f *file) arguments(t *tables, at uint64) ([]linkerset.Argument, error) {
	key := types{f.u32(at + 16), f.u32(at + 20), f.data[at+32], f.data[at+33], f.u32(at + 24)}
	if known, ok := t.known[key]; ok {
		return known, nil
	}
	native, err := f.strings(t, key.native, key.nativeN)
	if err != nil {
		return nil, err
	}
	translated, err := f.strings(t, key.translated, key.translatedN)
	if err != nil {
		return nil, err
	}
	if uint64(key.mapping)+uint64(key.translatedN) > t.args.size {
		return nil, fmt.Errorf("has %d arguments at %#x, behind their table", key.translatedN, key.mapping)
	}
	all := make([]linkerset.Argument, len(translated))
	for i := range all {
		from := f.data[t.args.offset+uint64(key.mapping)+uint64(i)]
		if from >= key.nativeN {
			return nil, fmt.Errorf("has an argument that is number %d of %d", from, key.nativeN)
		}
		all[i] = linkerset.Argument{Index: i, Native: native[from]}
		if translated[i] != native[from] {
			all[i].Translated = translated[i]
		}
	}
	t.known[key] = all
	return all, nil
}

// strings reads some that stand one behind the other.
func (f *file) strings(t *tables, first uint32, n byte) ([]string, error) {
	off := uint64(first)
	all := make([]string, n)
	for i := range all {
		var err error
		if all[i], off, err = f.string(t, off); err != nil {
			return nil, err
		}
	}
	return all, nil
}
