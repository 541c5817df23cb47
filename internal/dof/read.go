package dof

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"iter"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/linkerset"
)

// FunctionProbe is a probe in a function, as Read finds it.
type FunctionProbe struct {
	Provider, Function, Name string // as DTrace shows them, with dashes
	Args                     []linkerset.Argument
	Sites                    []Site
}

// Site is what a kernel arms.
type Site struct {
	Addr image.Addr
	Kind arch.Kind
}

// Read returns the probes of a linked file, in its order. It returns none of an object: only a linker knows where functions are. Addresses are
// those that it is linked for. What cannot be read is in faults, each an *elfreloc.Error;
// err keeps a whole section from being read.
func Read(o *elfreloc.Object, im image.Image) (probes []FunctionProbe, faults []error, err error) {
	if o.Type == elf.ET_REL {
		return nil, nil, nil
	}
	left := uint64(o.Size())
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.Name != SectionName || s.Type == elf.SHT_NOBITS {
			continue
		}
		if s.Size > left {
			return nil, nil, o.SectionError(i, errors.New("overlaps others in the file"))
		}
		left -= s.Size
		data, err := o.Data(i)
		if err != nil {
			return nil, nil, err
		}
		sectionProbes, at, err := readFiles(im, s.Addr, data)
		if err != nil {
			faults = append(faults, o.OffsetError(i, at, err))
		}
		probes = append(probes, sectionProbes...)
	}
	return probes, faults, nil
}

// readFiles reads the files that a linker has put one behind the other. An error is about
// the one at an offset; what was read before it counts.
func readFiles(im image.Image, addr uint64, data []byte) (probes []FunctionProbe, at uint64, err error) {
	size := uint64(len(data))
	for at < size {
		if data[at] == 0 { // between two of them
			at++
			continue
		}
		n, err := fileSize(im.Encoding(), data[at:])
		if err != nil {
			return probes, at, err
		}
		file := data[at : at+n]
		f := &fileReader{im: im, addr: addr + at, data: file, text: string(file), left: reread * n, relative: map[uint64]bool{}}
		f.readSections()
		for _, s := range f.sections {
			if s.typ == sectURelHdr && f.err == nil {
				f.relocations(s)
			}
		}
		for _, s := range f.sections {
			if s.typ == sectProvider && f.err == nil {
				f.provider(s)
			}
		}
		probes = append(probes, f.probes...)
		if f.err != nil {
			return probes, at, f.err
		}
		at += n
	}
	return probes, 0, nil
}

// fileSize reads how long a file is, from its header.
func fileSize(enc elfreloc.Encoding, data []byte) (uint64, error) {
	const sizeAt = 48 // of dofh_filesz
	if len(data) < headerSize || string(data[:4]) != "\x7fDOF" {
		return 0, errors.New("holds what is not DTrace's object format")
	}
	n := enc.Order.Uint64(data[sizeAt:])
	if n < headerSize || n > uint64(len(data)) {
		return 0, fmt.Errorf("has %d bytes by its header, and there are %d", n, len(data))
	}
	return n, nil
}

// fileReader reads one file of the format.
type fileReader struct {
	im       image.Image
	addr     uint64 // of its first byte
	data     []byte
	text     string // the same
	left     uint64 // bytes of tables and strings that may yet be read
	sections []sectionHeader
	relative map[uint64]bool // the fields, by offset, that hold a distance from themselves
	probes   []FunctionProbe

	// err is the first fault. What is read after it is empty.
	err error
}

// sectionHeader is a dof_sec_t.
type sectionHeader struct {
	typ, entsize uint32
	offset, size uint64 // of what it holds, in the file
}

var errOverlap = errors.New("has tables that overlap many times")

// reread is how often a file is read at most, in all. DTrace's have nothing that overlaps.
const reread = 4

func (f *fileReader) fail(format string, args ...any) {
	if f.err == nil {
		f.err = fmt.Errorf(format, args...)
	}
}

func (f *fileReader) u16(at uint64) uint16 { return f.im.Encoding().Order.Uint16(f.data[at:]) }
func (f *fileReader) u32(at uint64) uint32 { return f.im.Encoding().Order.Uint32(f.data[at:]) }
func (f *fileReader) u64(at uint64) uint64 { return f.im.Encoding().Order.Uint64(f.data[at:]) }

// take counts bytes of tables.
func (f *fileReader) take(n uint64) {
	if n > f.left {
		f.err, n = cmp.Or(f.err, errOverlap), 0
	}
	f.left -= n
}

// readSections reads the headers of sections (dofh_secoff, dofh_secnum and dofh_secsize).
func (f *fileReader) readSections() {
	size := uint64(len(f.data))
	entry, n, start := uint64(f.u32(24)), uint64(f.u32(28)), f.u64(32)
	if entry < sectionHeaderSize || start > size || n > (size-start)/entry {
		f.fail("has %d headers of sections of %d bytes at %#x", n, entry, start)
		return
	}
	for i := range n {
		at := start + i*entry
		s := sectionHeader{typ: f.u32(at), entsize: f.u32(at + 12), offset: f.u64(at + 16), size: f.u64(at + 24)}
		if s.offset > size || s.size > size-s.offset {
			f.fail("has a section of %d bytes at %#x, behind its end", s.size, s.offset)
			return
		}
		f.sections = append(f.sections, s)
	}
}

// section finds the one of a type that the dof_secidx_t at an offset names. Its entries have a size at least.
func (f *fileReader) section(at uint64, typ, size uint32) (s sectionHeader) {
	index := f.u32(at)
	if uint64(index) >= uint64(len(f.sections)) || f.sections[index].typ != typ {
		f.fail("names section %d, which is not of type %d", index, typ)
		return s
	}
	if s = f.sections[index]; s.entsize < size {
		f.fail("has entries of %d bytes in section %d", s.entsize, index)
	}
	return s
}

// relocations reads a dof_relohdr_t and its dof_relodesc_t.
func (f *fileReader) relocations(s sectionHeader) {
	if s.size < 12 {
		f.fail("has a header of relocations of %d bytes", s.size)
		return
	}
	list, target := f.section(s.offset+4, sectRelTab, relocSize), f.section(s.offset+8, sectProbes, 0)
	f.take(list.size)
	for at := range f.entries(list) {
		if Relocation(f.u32(at+4)) == Relative {
			f.relative[target.offset+f.u64(at+8)] = true
		}
	}
}

// entries returns the offsets of the entries of a table, none after a fault.
func (f *fileReader) entries(s sectionHeader) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for off := uint64(0); f.err == nil && off+uint64(s.entsize) <= s.size; off += uint64(s.entsize) {
			if !yield(s.offset + off) {
				return
			}
		}
	}
}

// providerTables are the sections of a provider.
type providerTables struct {
	name                                    string
	strings, probes, args, offsets, enabled sectionHeader
	arguments                               map[argTypes][]linkerset.Argument
}

// provider reads a dof_provider_t and its probes.
func (f *fileReader) provider(s sectionHeader) {
	if s.size < 44 {
		f.fail("has a provider of %d bytes", s.size)
		return
	}
	at := s.offset
	t := providerTables{
		strings: f.section(at, sectStrtab, 0), probes: f.section(at+4, sectProbes, probeSize),
		args: f.section(at+8, sectPrArgs, 1), offsets: f.section(at+12, sectPrOffs, 4),
		arguments: map[argTypes][]linkerset.Argument{},
	}
	if f.u32(at+40) != 0 {
		t.enabled = f.section(at+40, sectPrEnOffs, 4)
	}
	t.name, _ = f.string(&t, uint64(f.u32(at+16)))
	f.take(t.probes.size)
	for at := range f.entries(t.probes) {
		if p := f.probe(&t, at); f.err == nil {
			f.probes = append(f.probes, p)
		}
	}
}

// string reads a string of a provider's, and returns the offset of what is behind it.
func (f *fileReader) string(t *providerTables, off uint64) (s string, next uint64) {
	if off < t.strings.size && f.err == nil {
		text := f.text[t.strings.offset+off:][:t.strings.size-off]
		if n := strings.IndexByte(text, 0); n >= 0 {
			f.take(uint64(n) + 1)
			return text[:n], off + uint64(n) + 1
		}
	}
	f.fail("has a string at %#x that does not end", off)
	return "", 0
}

// probe reads the dof_probe_t at an offset.
func (f *fileReader) probe(t *providerTables, at uint64) (p FunctionProbe) {
	p.Provider = t.name
	p.Function, _ = f.string(t, uint64(f.u32(at+8)))
	p.Name, _ = f.string(t, uint64(f.u32(at+12)))
	p.Args = f.arguments(t, at)
	start := f.start(at)
	for _, siteTable := range []struct {
		table    sectionHeader
		first, n uint64
		kind     arch.Kind
	}{
		{t.offsets, uint64(f.u32(at + 28)), uint64(f.u16(at + 34)), arch.Probe},
		{t.enabled, uint64(f.u32(at + 36)), uint64(f.u16(at + 40)), arch.Enabled},
	} {
		if siteTable.n > 0 && (siteTable.first+siteTable.n)*4 > siteTable.table.size {
			f.fail("has %d sites of %s at %d, behind their table", siteTable.n, p.Name, siteTable.first)
		}
		f.take(siteTable.n * 4)
		for i := uint64(0); i < siteTable.n && f.err == nil; i++ {
			off := uint64(f.u32(siteTable.table.offset + (siteTable.first+i)*4))
			p.Sites = append(p.Sites, Site{start.Add(off), siteTable.kind})
		}
	}
	return p
}

// start returns where the function of a probe begins, as a linker has filled it in.
func (f *fileReader) start(at uint64) image.Addr {
	field := image.Addr{Offset: f.addr + at}
	if f.relative[at] {
		return field.Add(f.u64(at))
	}
	if f.im.Encoding().Word() != 8 { // a word is shorter than the field
		return image.Addr{Offset: f.u64(at)}
	}
	ref, err := f.im.Word(field)
	f.err = cmp.Or(f.err, err)
	return ref.Addr
}

// argTypes are what a dof_probe_t says of the arguments of a probe. It is the same for all
// functions that have sites of it.
type argTypes struct {
	native, translated uint32 // strings, one behind the other
	nativeN            byte
	translatedN        byte
	mapping            uint32 // which argument each translated one is, a byte each
}

// arguments reads what D programs see of the arguments of a probe.
func (f *fileReader) arguments(t *providerTables, at uint64) []linkerset.Argument {
	key := argTypes{f.u32(at + 16), f.u32(at + 20), f.data[at+32], f.data[at+33], f.u32(at + 24)}
	if args, ok := t.arguments[key]; ok {
		return args
	}
	native, translated := f.strings(t, key.native, key.nativeN), f.strings(t, key.translated, key.translatedN)
	if uint64(key.mapping)+uint64(key.translatedN) > t.args.size {
		f.fail("has %d arguments at %#x, behind their table", key.translatedN, key.mapping)
	}
	if f.err != nil {
		return nil
	}
	args := make([]linkerset.Argument, len(translated))
	for i := range args {
		from := f.data[t.args.offset+uint64(key.mapping)+uint64(i)]
		if from >= key.nativeN {
			f.fail("has an argument that is number %d of %d", from, key.nativeN)
			return nil
		}
		args[i] = linkerset.Argument{Index: i, Native: native[from]}
		if translated[i] != native[from] {
			args[i].Translated = translated[i]
		}
	}
	t.arguments[key] = args
	return args
}

// strings reads some that stand one behind the other.
func (f *fileReader) strings(t *providerTables, first uint32, n byte) []string {
	off := uint64(first)
	texts := make([]string, n)
	for i := range texts {
		texts[i], off = f.string(t, off)
	}
	return texts
}
