package resolve

import (
	"cmp"
	"debug/elf"
	"slices"
	"sort"
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
const rankTypeless = 8

// rank orders the symbols of one address; the least is chosen.
func rank(s elfreloc.Symbol) uint8 {
	r := uint8(0)
	if s.Size == 0 {
		r += 16
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
	if slices.Contains(moduleEntries, s.Name) {
		r += rankModuleEntry
	}
	return r
}

// moduleEntries are second names of functions, by which Linux finds how a module begins and ends (module_init, module_exit).
var moduleEntries = []string{"init_module", "cleanup_module"}

// rankModuleEntry is more than what the binding of a symbol adds.
const rankModuleEntry = 3

// sortEntries sorts by code range, start, rank, name and index. Linkers leave symbols in the order of a hash table, so there is
// much to move: places of entries are sorted in their stead.
func (c *collector) sortEntries() {
	type place struct {
		start       uint64
		code, index uint32
	}
	places := make([]place, len(c.entries))
	for i := range c.entries {
		places[i] = place{c.entries[i].start, uint32(c.entries[i].code), uint32(i)}
	}
	slices.SortFunc(places, func(a, b place) int {
		switch {
		case a.code < b.code || a.code == b.code && a.start < b.start:
			return -1
		case a.code > b.code || a.start > b.start:
			return 1
		}
		return c.compareAliases(c.entries[a.index], c.entries[b.index])
	})
	sorted := make([]entry, len(places))
	for i, p := range places {
		sorted[i] = c.entries[p.index]
	}
	c.entries = sorted
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

// entry is a function in the making: of a symbol, or of a frame.
type entry struct {
	code        int // index of its code range
	start, size uint64
	symbol      uint32    // 0 for a frame
	rank        uint8     // of the symbol
	frame       frameKind // of the frame
}

// compareStarts sorts by code range and start.
func compareStarts(a, b entry) int {
	if a.code != b.code {
		return cmp.Compare(a.code, b.code)
	}
	return cmp.Compare(a.start, b.start)
}

// typeless reports whether the entry is of a symbol without a type.
func (e *entry) typeless() bool { return e.rank&rankTypeless != 0 }

// spans says which of its entries holds an address: the innermost, that is, of
// those that hold it, the one that starts last.
//
// That is worked out when it is made. The entries are cut at each other's ends
// into ranges that do not overlap, at most twice as many, so that a look-up is
// one search, however deep a hostile file nests its functions.
type spans struct {
	code    elfreloc.Code
	ranges  [][]held // of each code range; each ends where its entry does or the next one starts
	entries []entry
}

// held is a range that an entry holds.
type held struct {
	start uint64
	entry uint32
}

// makeSpans takes entries sorted by code range, start and rank.
func makeSpans(code elfreloc.Code, entries []entry) spans {
	s := spans{code: code, ranges: make([][]held, len(code)), entries: entries}
	for r, at := 0, 0; at < len(entries); r++ {
		end := at
		for end < len(entries) && entries[end].code == r {
			end++
		}
		w := sweep{entries: entries, end: code[r].End, held: make([]held, 0, end-at)}
		for at < end {
			at = w.open(at, end)
		}
		w.close(w.end)
		s.ranges[r] = w.held
	}
	return s
}

func (s *spans) len() int { return len(s.entries) }

// find returns the entry that holds an address, or nil.
func (s *spans) find(section int, off uint64) *entry {
	c := s.code.Find(section, off)
	if c < 0 {
		return nil
	}
	ranges := s.ranges[c]
	i := sort.Search(len(ranges), func(i int) bool { return ranges[i].start > off })
	if i == 0 {
		return nil
	}
	if e := &s.entries[ranges[i-1].entry]; e.size == 0 || off-e.start < e.size {
		return e
	}
	return nil
}

// sweep goes through the entries of a code range in the order of their starts.
type sweep struct {
	held    []held
	entries []entry
	end     uint64   // of the code range
	holding []uint32 // the entries that hold the present address, and ended ones below them; the innermost last
	ends    []uint64 // theirs
}

// open handles all entries of one start, the first of which is at i, and returns
// the index behind them. The entries of the code range go up to last.
func (w *sweep) open(i, last int) int {
	start, next := w.entries[i].start, i+1
	for next < last && w.entries[next].start == start {
		next++
	}
	w.close(start)
	if w.entries[i].size == 0 {
		// Nothing sized begins here. A label inside a sized function is not a function.
		if len(w.holding) == 0 {
			end := w.end
			if next < last {
				end = w.entries[next].start
			}
			w.push(i, end)
			w.emit(start, uint32(i))
		}
		return next
	}
	for k := next - 1; k >= i; k-- { // the best one last, to be the innermost
		if w.entries[k].size > 0 {
			w.push(k, start+min(w.entries[k].size, w.end-start))
		}
	}
	w.emit(start, uint32(i))
	return next
}

func (w *sweep) push(i int, end uint64) {
	w.holding, w.ends = append(w.holding, uint32(i)), append(w.ends, end)
}

// close ends the entries that do not reach beyond an address.
func (w *sweep) close(at uint64) {
	for n := len(w.ends); n > 0 && w.ends[n-1] <= at; n = len(w.ends) {
		end := w.ends[n-1]
		for n > 0 && w.ends[n-1] <= end {
			n--
		}
		w.holding, w.ends = w.holding[:n], w.ends[:n]
		if n > 0 {
			w.emit(end, w.holding[n-1])
		}
	}
}

// emit begins a range. It takes the place of one that begins there too.
func (w *sweep) emit(start uint64, entry uint32) {
	if n := len(w.held) - 1; n >= 0 && w.held[n].start == start {
		w.held[n].entry = entry
		return
	}
	w.held = append(w.held, held{start, entry})
}

// after returns the start of the first entry behind an address of a code range,
// or the range's end.
func (s *spans) after(code int, addr uint64) uint64 {
	i := sort.Search(len(s.entries), func(i int) bool {
		e := &s.entries[i]
		return e.code > code || e.code == code && e.start > addr
	})
	if i < len(s.entries) && s.entries[i].code == code {
		return s.entries[i].start
	}
	return s.code[code].End
}

// at returns the first entry that starts at an address, or nil.
func (s *spans) at(code int, addr uint64) *entry {
	i, found := slices.BinarySearchFunc(s.entries, entry{code: code, start: addr}, compareStarts)
	if !found {
		return nil
	}
	return &s.entries[i]
}
