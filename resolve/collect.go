package resolve

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// collector finds the functions among symbols.
type collector struct {
	o           *elfreloc.Object // the object or image itself, also for the symbols of its debug file
	syms        *elfreloc.Symbols
	code        elfreloc.Code
	conventions arch.Conventions

	entries     []entry
	files       []uint32
	descriptors *descriptors
}

func (c *collector) collect() (err error) {
	if len(c.code) == 0 {
		return nil
	}
	if c.descriptors, err = readDescriptors(c.o, c.conventions); err != nil {
		return err
	}
	c.entries = make([]entry, 0, c.syms.Len())
	for i := 1; i < c.syms.Len(); i++ {
		s := c.syms.At(i)
		switch s.Type {
		case elf.STT_FILE:
			c.files = append(c.files, uint32(i))
		case elf.STT_FUNC, elf.STT_GNU_IFUNC, elf.STT_NOTYPE:
			if s.Defined() {
				c.add(i, s)
			}
		}
	}
	return nil
}

// add adds a symbol that is a function's.
func (c *collector) add(i int, s elfreloc.Symbol) {
	section, start, ok := c.place(s)
	if !ok {
		return
	}
	code := c.code.Find(section, start)
	if code < 0 || !mayName(s.Name, s.Type) || s.Type == elf.STT_NOTYPE && slices.Contains(c.conventions.LinkerStubNames, s.Name) {
		return
	}
	c.entries = append(c.entries, entry{code: code, start: start, size: s.Size, symbol: uint32(i), rank: rank(s)})
}

// place returns where the code of a symbol begins.
func (c *collector) place(s elfreloc.Symbol) (section int, start uint64, ok bool) {
	if c.o.Type == elf.ET_REL {
		section = s.Section
	}
	if c.descriptors.hold(section, s.Value) {
		return c.descriptors.entry(section, s.Value)
	}
	if s.Type != elf.STT_NOTYPE {
		s.Value &^= c.conventions.Mode
	}
	return section, s.Value, true
}

// mayName reports whether a function may be called by a name. Mapping symbols (ELF for
// the Arm Architecture, 5.5.5, and RISC-V's) and the labels of compilers and of
// assemblers name places in functions. dtrace -G adds a name of its own to functions.
func mayName(name string, typ elf.SymType) bool {
	if name == "" || strings.HasPrefix(name, ".L") || strings.HasPrefix(name, "$dtrace") {
		return false
	}
	if name[0] == '$' && len(name) == 2 && strings.IndexByte("adtx", name[1]) >= 0 { // mold's, which are of STT_FUNC
		return false
	}
	if typ != elf.STT_NOTYPE {
		return true
	}
	// GNU as calls the labels 1: and 1$: by such bytes ("Symbol Names").
	return name[0] != '$' && !strings.ContainsAny(shortName(name), "\x01\x02")
}

// shortName returns the beginning of a name. A hostile file may have many symbols share
// one long name.
func shortName(name string) string { return name[:min(len(name), 256)] }

// rankTypeless is the bit of symbols without a type in their rank.
const rankTypeless = 4

// rank orders the symbols of one address; the least is chosen.
func rank(s elfreloc.Symbol) uint8 {
	r := uint8(0)
	if s.Size == 0 {
		r += 8
	}
	if s.Type == elf.STT_NOTYPE {
		r += rankTypeless
	}
	switch s.Bind {
	case elf.STB_LOCAL:
		r += 2
	case elf.STB_WEAK:
		r++
	}
	return r
}

// sort sorts by code range, start, rank, name and index.
func (c *collector) sort() {
	slices.SortFunc(c.entries, func(a, b entry) int {
		if order := compareStarts(a, b); order != 0 {
			return order
		}
		return c.compareAliases(a, b)
	})
}

func (c *collector) compareAliases(a, b entry) int {
	if a.rank != b.rank {
		return cmp.Compare(a.rank, b.rank)
	}
	x, y := shortName(c.syms.Name(int(a.symbol))), shortName(c.syms.Name(int(b.symbol)))
	return cmp.Or(strings.Compare(x, y), cmp.Compare(a.symbol, b.symbol))
}

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
