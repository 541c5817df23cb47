package amd64

import (
	"debug/elf"
	"encoding/binary"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"sdtconvert/arch"
	"sdtconvert/arch/internal/x86"
)

// flow knows from where else than the instruction before text may be reached: where
// direct jumps go, what has a symbol, and whose address is taken, in code or in data.
// Where it cannot tell which places are, all are that come into question.
type flow struct {
	code   arch.ObjectCode
	runs   []uint64         // by Refs: where the array begins that a relocation is in
	into   map[int][]int    // the Refs to a text section
	refsIn map[int][]int    // the Refs in a text section
	bases  map[int][]uint64 // what code refers to in sections of data, sorted

	section int // of what follows
	ready   bool
	text    arch.Text
	starts  []uint64        // of functions, sorted; 0 is the first
	labels  map[uint64]bool // that nothing but the address of the global offset table is made of
	fields  bitmap          // that are relocated
	taken   bitmap          // functions of which some address is taken within
	entries bitmap
	guesses bitmap // entries among others that are none: where distances lead to from each place they may be from
	spread  spread
	work    int // instructions that were followed, of all sections

	otherText arch.Text // of section otherFrom: of another section that refers to this one
	otherFrom int
}

func newFlow(c arch.ObjectCode) *flow {
	f := &flow{code: c, runs: make([]uint64, len(c.Refs)), into: map[int][]int{}, refsIn: map[int][]int{}, bases: map[int][]uint64{}}
	for i, r := range c.Refs {
		f.runs[i] = r.Offset
		if i > 0 {
			if last := c.Refs[i-1]; last.Section == r.Section && last.Type == r.Type && last.Offset+wordOf(r.Type) == r.Offset {
				f.runs[i] = f.runs[i-1]
			}
		}
		if r.To.Section > 0 {
			f.into[r.To.Section] = append(f.into[r.To.Section], i)
		}
		if !r.Code {
			continue
		}
		f.refsIn[r.Section] = append(f.refsIn[r.Section], i)
		if r.To.Section > 0 {
			f.bases[r.To.Section] = append(f.bases[r.To.Section], refTarget(r))
		}
	}
	for section, b := range f.bases {
		slices.Sort(b)
		f.bases[section] = slices.Compact(b)
	}
	return f
}

// wordOf returns the size in bytes of the relocated field of types that tables are made
// of.
func wordOf(typ uint32) uint64 {
	if elf.R_X86_64(typ) == elf.R_X86_64_PC64 {
		return 8
	}
	return 4
}

// refTarget returns the offset that a relocation of code leads to, in the section of its
// symbol.
func refTarget(r arch.CodeRef) uint64 {
	at := r.To.Offset + uint64(r.Addend)
	switch elf.R_X86_64(r.Type) {
	case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
		return at + x86.FieldLen // the field ends the instruction
	case elf.R_X86_64_PC16:
		return at + 2
	case elf.R_X86_64_PC8:
		return at + 1
	case elf.R_X86_64_GOTPCREL, elf.R_X86_64_GOTPCRELX, elf.R_X86_64_REX_GOTPCRELX, elf.R_X86_64_GOT64,
		elf.R_X86_64_GOTPCREL64, elf.R_X86_64_GOTPLT64, elf.R_X86_64_PLTOFF64:
		return r.To.Offset // through a slot or an entry of its own
	}
	return at
}

// prepare finds the entries of a section.
func (f *flow) prepare(section int) (err error) {
	if f.ready && f.section == section {
		return nil
	}
	f.ready = false
	if f.text, err = f.code.Text(section); err != nil {
		return err
	}
	size := uint64(len(f.text.Code))
	f.section, f.labels = section, map[uint64]bool{}
	f.fields, f.taken, f.entries, f.guesses = newBitmap(size), newBitmap(size), newBitmap(size), newBitmap(size)
	f.addSymbols()
	for _, i := range f.refsIn[section] {
		r := &f.code.Refs[i]
		f.fields.add(r.Offset)
		switch elf.R_X86_64(r.Type) {
		case elf.R_X86_64_GOTPC32, elf.R_X86_64_GOTPC64:
			f.labels[r.Offset-uint64(r.Addend)] = true
		}
	}
	for _, i := range f.into[section] {
		if err := f.addRef(i); err != nil {
			return err
		}
	}
	f.spread.add(f.guesses, 0, 0, 0, 0)
	for i, start := range f.starts {
		f.addFunction(start, f.end(i))
	}
	f.ready = true
	return nil
}

func (f *flow) addSymbols() {
	f.starts = []uint64{0}
	from, _ := slices.BinarySearchFunc(f.code.Symbols, f.section, func(s arch.Symbol, section int) int { return s.Section - section })
	for _, s := range f.code.Symbols[from:] {
		if s.Section != f.section {
			break
		}
		f.entries.add(s.Offset)
		if s.Func && s.Offset < f.entries.size && s.Offset > f.starts[len(f.starts)-1] {
			f.starts = append(f.starts, s.Offset)
		}
	}
}

// end returns where function i ends, and what is behind it.
func (f *flow) end(i int) uint64 {
	if i+1 < len(f.starts) {
		return f.starts[i+1]
	}
	return f.entries.size
}

// take notes that the address of a place is taken. Within a function other places may
// be told by their distance from it, which needs no relocation.
func (f *flow) take(to uint64) {
	if f.labels[to] || to >= f.entries.size {
		return
	}
	i, begins := slices.BinarySearch(f.starts, to)
	if begins || f.taken.has(f.starts[i-1]) {
		return
	}
	f.taken.add(f.starts[i-1])
	f.entries.addAll(f.starts[i-1]+1, f.end(i-1))
}

// addRef adds what a relocation leads to.
func (f *flow) addRef(i int) error {
	r := f.code.Refs[i]
	if !r.Code {
		f.addData(i)
		return nil
	}
	switch elf.R_X86_64(r.Type) {
	case elf.R_X86_64_PC32, elf.R_X86_64_PLT32:
		text, err := f.textOf(r.Section)
		if err != nil {
			return err
		}
		if site, _ := mode.DecodeDirect(text, r.Relocation); site.Code == nil {
			f.take(refTarget(r)) // by another instruction than a call or a jump
		}
	case elf.R_X86_64_PC16, elf.R_X86_64_PC8:
	default:
		f.take(refTarget(r))
	}
	f.entries.add(refTarget(r))
	return nil
}

// textOf returns the text of a section that refers to the one that is prepared.
func (f *flow) textOf(section int) (arch.Text, error) {
	if section == f.section {
		return f.text, nil
	}
	if f.otherFrom != section {
		text, err := f.code.Text(section)
		if err != nil {
			return text, err
		}
		f.otherText, f.otherFrom = text, section
	}
	return f.otherText, nil
}

// mostBases is how many beginnings of tables are looked at in one array.
const mostBases = 16

// addData adds what a relocation of data leads to. Distances are from the beginning of
// a table that code refers to: T = S + A - (P - table).
func (f *flow) addData(i int) {
	r := f.code.Refs[i]
	at := r.To.Offset + uint64(r.Addend)
	switch elf.R_X86_64(r.Type) {
	case elf.R_X86_64_64, elf.R_X86_64_32, elf.R_X86_64_32S:
		f.entries.add(at)
		return
	case elf.R_X86_64_PC32, elf.R_X86_64_PC64:
	default:
		f.take(at)
		return
	}
	bases := f.bases[r.Section]
	from, _ := slices.BinarySearch(bases, f.runs[i])
	to, _ := slices.BinarySearch(bases, r.Offset+1)
	if from == to || to-from > mostBases {
		f.spread.add(f.guesses, r.Section, f.runs[i], at-min(at, r.Offset-f.runs[i]), at+1)
		return
	}
	into := f.guesses
	if to-from == 1 {
		into = f.entries
	}
	for _, base := range bases[from:to] {
		into.add(at - (r.Offset - base))
	}
}

// spread is where the distances of one array may lead to, measured from an unknown
// address.
type spread struct {
	section  int
	run      uint64
	from, to uint64
}

// add goes on with an array, or adds what the last one leads to and begins another.
func (s *spread) add(entries bitmap, section int, run, from, to uint64) {
	if s.section == section && s.run == run {
		s.from, s.to = min(s.from, from), max(s.to, to)
		return
	}
	entries.addAll(s.from, s.to)
	*s = spread{section, run, from, to}
}

// addFunction adds where the jumps of a function go, and whose addresses it takes. What
// is behind an instruction that is not known may be anything, also a jump.
func (f *flow) addFunction(start, to uint64) {
	for from := start; from < to; {
		inst, n := decode(f.text.Code[from:to])
		if n == 0 {
			mode.Branches(f.text.Code[from:to], from, func(_, to uint64) { f.entries.add(to) })
			f.addShortJumps(from, to)
			return
		}
		end := from + uint64(n)
		for _, a := range inst.Args {
			switch a := a.(type) {
			case x86asm.Rel:
				// A jump within leads there with what is known (analysis), and a relocation says
				// itself where to (addRef).
				dest := end + uint64(int64(a))
				if !f.fields.any(from, end) && (inst.Op == x86asm.CALL || dest < start || dest >= to) {
					f.entries.add(dest)
				}
			case x86asm.Mem:
				if a.Base == x86asm.RIP && inst.Op == x86asm.LEA && !f.fields.has(end-x86.FieldLen) {
					f.take(end + uint64(int32(a.Disp)))
				}
			}
		}
		from = end
	}
}

// addShortJumps takes each byte for the opcode of a short jump or a loop, and what may
// be a lea of an address for one.
func (f *flow) addShortJumps(from, to uint64) {
	code := f.text.Code[:to]
	for at := from; at+1 < to; at++ {
		switch op := code[at]; {
		case op&0xf0 == x86.OpJccShort, op == x86.OpJmpShort, op&^3 == 0xe0:
			f.entries.add(at + 2 + uint64(int64(int8(code[at+1]))))
		case op == 0x8d && code[at+1]&0xc7 == 5 && at+2+x86.FieldLen <= to && !f.fields.has(at+2):
			f.take(at + 2 + x86.FieldLen + uint64(int64(int32(binary.LittleEndian.Uint32(code[at+2:])))))
		}
	}
}
