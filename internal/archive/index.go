package archive

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
)

// index is the member that lists which member defines each symbol.
//
// That of System V is big-endian on every machine: a count, as many offsets of
// headers, and as many names that end in NUL; "/SYM64/" has words of 64 bits. That
// of BSD is in the byte order of its maker: the length of a table, pairs of
// the offset of a name and that of a header, the length of the names, the names.
type index struct {
	span         // of the table itself
	header int64 // offset of the member's header
	bsd    bool  // and not System V
	wide   bool  // words of 64 bits
	sorted bool  // by name
}

// entry is one symbol of an index.
type entry struct {
	name   string
	header uint64 // offset of the header of the member that defines it
}

// table is an index in memory.
type table struct {
	*index
	raw     []byte
	order   binary.ByteOrder
	entries []entry
	align   int  // of its end
	renamed bool // the symbols are no longer those of raw
}

// word returns the size of a count or an offset in bytes.
func (x *index) word() int {
	if x.wide {
		return 8
	}
	return 4
}

// readIndex reads the index, and checks that it holds what it says.
func (a *Archive) readIndex() (*table, error) {
	x := a.index
	raw, err := a.read(x.start, x.end-x.start)
	if err != nil {
		return nil, err
	}
	t := &table{index: x, raw: raw, order: binary.BigEndian, align: 2}
	if x.bsd {
		err = t.readBSD()
	} else {
		err = t.readSystemV()
	}
	if err != nil {
		return nil, a.errorf(x.header, "the symbol index %w; run ranlib", err)
	}
	return t, nil
}

func (t *table) get(at int) uint64 {
	if t.wide {
		return t.order.Uint64(t.raw[at:])
	}
	return uint64(t.order.Uint32(t.raw[at:]))
}

func (t *table) put(at int, v uint64) {
	if t.wide {
		t.order.PutUint64(t.raw[at:], v)
	} else {
		t.order.PutUint32(t.raw[at:], uint32(v))
	}
}

func (t *table) readSystemV() error {
	w := t.word()
	if len(t.raw) < w {
		return fmt.Errorf("has %d bytes", len(t.raw))
	}
	count, room := t.get(0), len(t.raw)-w
	if count > uint64(room)/uint64(w) {
		return fmt.Errorf("counts %d symbols in %d bytes", count, len(t.raw))
	}
	names := t.raw[w+int(count)*w:]
	t.entries = make([]entry, count)
	for i := range t.entries {
		end := bytes.IndexByte(names, 0)
		if end < 0 {
			return fmt.Errorf("names %d symbols and counts %d", i, count)
		}
		t.entries[i] = entry{string(names[:end]), t.get(w + i*w)}
		names = names[end+1:]
	}
	if len(names) > 1 { // GNU pads an index of 64 bits so, and LLVM does not
		t.align = 8
	}
	return nil
}

func (t *table) readBSD() error {
	for _, t.order = range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		if _, _, ok := t.partsBSD(); ok {
			return t.readPairs()
		}
	}
	return fmt.Errorf("has lengths that do not fit its %d bytes", len(t.raw))
}

// partsBSD divides the index into its pairs and its names, by the lengths that it
// has in the byte order of t.
func (t *table) partsBSD() (pairs, names span, ok bool) {
	w, n := int64(t.word()), int64(len(t.raw))
	if n < 2*w {
		return
	}
	size := t.get(0)
	if size > uint64(n-2*w) || size%uint64(2*w) != 0 {
		return
	}
	pairs = span{w, w + int64(size)}
	length := t.get(int(pairs.end))
	if length > uint64(n-2*w)-size {
		return
	}
	names.start = pairs.end + w
	names.end = names.start + int64(length)
	return pairs, names, true
}

func (t *table) readPairs() error {
	pairs, where, _ := t.partsBSD()
	names, w := t.raw[where.start:where.end], t.word()
	if len(t.raw)%8 == 0 { // as LLVM pads it
		t.align = 8
	}
	t.entries = make([]entry, 0, int(pairs.end-pairs.start)/(2*w))
	namesSize := 0
	for at := int(pairs.start); at < int(pairs.end); at += 2 * w {
		off := t.get(at)
		if off >= uint64(len(names)) {
			return fmt.Errorf("has a name at offset %d of %d bytes", off, len(names))
		}
		end := bytes.IndexByte(names[off:], 0)
		if namesSize += end + 1; end < 0 || namesSize > len(t.raw)*overlapping {
			return fmt.Errorf("has a name at offset %d without an end", off)
		}
		t.entries = append(t.entries, entry{string(names[off : off+uint64(end)]), t.get(at + w)})
	}
	return nil
}

// overlapping is how many times over the names of a BSD index may share their
// bytes: each is written by itself again.
const overlapping = 4

// write lays out a new index or, if only offsets have changed, copies the old one with new offsets.
func (t *table) write() ([]byte, error) {
	if !t.wide && slices.ContainsFunc(t.entries, func(e entry) bool { return e.header > math.MaxUint32 }) {
		return nil, errNarrow
	}
	switch {
	case !t.renamed:
		return t.patch(), nil
	case t.bsd:
		if t.sorted {
			slices.SortStableFunc(t.entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
		}
		return t.writeBSD(), nil
	}
	return t.writeSystemV(), nil
}

// patch returns the index with other offsets.
func (t *table) patch() []byte {
	out := &table{index: t.index, order: t.order, raw: bytes.Clone(t.raw)}
	at, step := t.word(), t.word()
	if t.bsd {
		at, step = 2*at, 2*step
	}
	for i, e := range t.entries {
		out.put(at+i*step, e.header)
	}
	return out.raw
}

func (t *table) writeSystemV() []byte {
	w, names := t.word(), 0
	for _, e := range t.entries {
		names += len(e.name) + 1
	}
	start := w * (1 + len(t.entries))
	out := &table{index: t.index, order: t.order, raw: make([]byte, start, start+names+t.align)}
	out.put(0, uint64(len(t.entries)))
	for i, e := range t.entries {
		out.put(w+i*w, e.header)
		out.addName(e.name)
	}
	return pad(out.raw, t.align)
}

// addName appends a name, and returns the offset where it is.
func (t *table) addName(name string) (at int) {
	at = len(t.raw)
	t.raw = append(append(t.raw, name...), 0)
	return at
}

// errNarrow says that a member stands too far behind for an index of 32 bits.
var errNarrow = fmt.Errorf("cannot name offsets beyond 4 GiB")

func (t *table) writeBSD() []byte {
	w := t.word()
	names := w * (2 + 2*len(t.entries))
	out := &table{index: t.index, order: t.order, raw: make([]byte, names)}
	out.put(0, uint64(names-2*w))
	for i, e := range t.entries {
		out.put(w+i*2*w, uint64(out.addName(e.name)-names))
		out.put(2*w+i*2*w, e.header)
	}
	length := len(out.raw) - names
	out.raw = pad(out.raw, t.align)
	// The length of names has the padding behind them in it, but for LLVM's ar.
	if _, old, ok := t.partsBSD(); ok && old.end == int64(len(t.raw)) && bytes.HasSuffix(t.raw, []byte{0, 0}) {
		length = len(out.raw) - names
	}
	out.put(names-w, uint64(length))
	return out.raw
}

func pad(b []byte, align int) []byte {
	return append(b, make([]byte, -len(b)&(align-1))...)
}

// Symbols lists what ranlib would list of an object: the global, weak and unique
// symbols that it defines, common ones among them, in the order of its table.
func Symbols(o *elfreloc.Object) ([]string, error) {
	t, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	var names []string
	for i := t.FirstGlobal(); i < t.Len(); i++ {
		switch s := t.At(i); s.Bind {
		case elf.STB_GLOBAL, elf.STB_WEAK, stbGNUUnique:
			if s.Section != 0 {
				names = append(names, strings.Clone(s.Name)) // lest it keeps all names
			}
		}
	}
	return names, nil
}

const stbGNUUnique elf.SymBind = 10 // STB_GNU_UNIQUE, of templates' static data
