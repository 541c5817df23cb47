package resolve

import (
	"debug/elf"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// descriptors are the function descriptors of an ABI whose symbols stand for
// them and not for code (64-bit PowerPC ELF ABI 1.9, 3.2.5). nil is none. They are found
// by their section alone: GNU ld 2.40, gold and mold write no DT_PPC64_OPD.
type descriptors struct {
	o       *elfreloc.Object
	index   int // of their section
	start   uint64
	data    []byte
	patched map[uint64]target // what relocations store, by offset
}

// target is where code begins.
type target struct {
	section int
	off     uint64
}

func readDescriptors(o *elfreloc.Object, a arch.Conventions) (*descriptors, error) {
	if a.Descriptors == "" {
		return nil, nil
	}
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.Name != a.Descriptors || !s.InFile() {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		d := &descriptors{o: o, index: i, start: s.Addr, data: data, patched: map[uint64]target{}}
		if o.Type == elf.ET_REL {
			return d, d.readObject(a.Absolute)
		}
		return d, d.readImage(a.Loaded)
	}
	return nil, nil
}

// readObject reads the relocations that the linker will apply.
func (d *descriptors) readObject(absolute uint32) error {
	d.start = 0
	syms, err := d.o.Symbols()
	if err != nil {
		return err
	}
	isOwn := func(sec *elfreloc.Section) bool { return sec == &d.o.Sections[d.index] }
	return d.o.EachRelocationOf(isOwn, func(_ int, r elfreloc.Relocation) error {
		if s := syms.At(int(r.Sym)); r.Type == absolute && s.Defined() && r.Offset < uint64(len(d.data)) {
			d.patched[r.Offset] = target{s.Section, s.Value + uint64(r.Addend)}
		}
		return nil
	})
}

// readImage reads the relocations that the loader will apply.
func (d *descriptors) readImage(loadBase uint32) error {
	return d.o.EachDynamic(func(r elfreloc.Relocation) error {
		if off := r.Offset - d.start; r.Type == loadBase && !r.Implicit && off < uint64(len(d.data)) {
			d.patched[off] = target{0, uint64(r.Addend)}
		}
		return nil
	})
}

// frames returns a frame for each word of an image's descriptors. Those that are no
// function's are addresses of data, or 0.
func (d *descriptors) frames() []frame {
	if d == nil || d.o.Type == elf.ET_REL {
		return nil
	}
	word := uint64(d.o.Encoding.Word())
	var frames []frame
	for off := uint64(0); off+word <= uint64(len(d.data)); off += word {
		if _, start, ok := d.entry(0, d.start+off); ok && start != 0 {
			frames = append(frames, frame{start: start, kind: frameDescribed})
		}
	}
	return frames
}

// hold reports whether a symbol stands for a descriptor.
func (d *descriptors) hold(section int, value uint64) bool {
	return d != nil && (d.o.Type != elf.ET_REL || section == d.index) && value-d.start < uint64(len(d.data))
}

// entry returns where the code of a descriptor begins.
func (d *descriptors) entry(section int, value uint64) (int, uint64, bool) {
	off := value - d.start
	if t, ok := d.patched[off]; ok {
		return t.section, t.off, true
	}
	if d.o.Type == elf.ET_REL || uint64(len(d.data))-off < uint64(d.o.Encoding.Word()) {
		return 0, 0, false
	}
	return section, d.o.Encoding.GetWord(d.data[off:]), true
}
