package amd64

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// randomEntries writes a section of functions whose instructions lead to random places, and knows
// which these are.
type randomEntries struct {
	*rand.Rand
	code    []byte
	starts  []uint64
	size    uint64
	refs    []arch.CodeRef
	symbols []arch.Symbol
	entries map[uint64]bool
	taken   map[uint64]bool
}

const entriesText, entriesData, entriesOther = 1, 2, 3 // sections

func (e *randomEntries) add(to uint64) {
	if to < e.size {
		e.entries[to] = true
	}
}

// function returns the function that holds an offset.
func (e *randomEntries) function(at uint64) (start, end uint64) {
	for i, s := range e.starts {
		start, end = s, e.size
		if i+1 < len(e.starts) {
			end = e.starts[i+1]
		}
		if at < end {
			break
		}
	}
	return start, end
}

// take notes that a place within a function may be any.
func (e *randomEntries) take(to uint64) {
	if start, end := e.function(to); to < e.size && to != start {
		e.taken[start] = true
		for at := start + 1; at < end; at++ {
			e.entries[at] = true
		}
	}
}

// destination returns a place in the section or near it, as often as not where something begins.
func (e *randomEntries) destination() uint64 {
	if e.IntN(2) == 0 {
		return e.starts[e.IntN(len(e.starts))] + uint64(e.IntN(2))
	}
	return e.Uint64N(e.size + 4)
}

// field writes an instruction of the opcode and a distance of 32 bits.
func (e *randomEntries) field(opcode []byte, jumps, calls, takes bool) {
	start, stop := e.function(uint64(len(e.code)))
	e.code = append(e.code, opcode...)
	at, to := uint64(len(e.code)), e.destination()
	end := at + 4
	ref := arch.CodeRef{
		Relocation: elfreloc.Relocation{Offset: at, Addend: -4, Type: uint32(elf.R_X86_64_PC32)},
		Section:    entriesText, Code: true, To: elfreloc.Addr{Section: entriesOther},
	}
	switch e.IntN(4) {
	case 0: // a relocation that leads into the section
		ref.To = elfreloc.Addr{Section: entriesText, Offset: to}
		if e.add(to); !jumps && !calls {
			e.take(to)
		}
		fallthrough
	case 1: // or elsewhere
		e.refs = append(e.refs, ref)
		to = end
	default:
		switch inside := start <= to && to < stop; {
		case calls, jumps && !inside:
			e.add(to)
		case takes:
			e.take(to)
		}
	}
	e.code = binary.LittleEndian.AppendUint32(e.code, uint32(to-end))
}

// instruction writes one.
func (e *randomEntries) instruction() {
	start, stop := e.function(uint64(len(e.code)))
	switch e.IntN(16) {
	case 0: // call
		e.field([]byte{0xe8}, false, true, false)
	case 1: // jmp
		e.field([]byte{0xe9}, true, false, false)
	case 2: // jcc
		e.field([]byte{0x0f, byte(0x80 + e.IntN(16))}, true, false, false)
	case 3: // lea n(%rip), %rsi
		e.field([]byte{0x48, 0x8d, 0x35}, false, false, true)
	case 4: // mov n(%rip), %rax
		e.field([]byte{0x48, 0x8b, 0x05}, false, false, false)
	case 5, 6: // jmp, jcc, loop
		to := int(e.destination())
		by := to - len(e.code) - 2
		if by != int(int8(by)) {
			return
		}
		if uint64(to) < start || uint64(to) >= stop {
			e.add(uint64(to))
		}
		e.code = append(e.code, []byte{0xeb, byte(0x70 + e.IntN(16)), byte(0xe0 + e.IntN(4))}[e.IntN(3)], byte(by))
	default: // mov %rsi, %rbx
		e.code = append(e.code, 0x48, 0x89, 0xf3)
	}
}

func newRandomEntries(seed uint64) *randomEntries {
	e := &randomEntries{Rand: rand.New(rand.NewPCG(seed, 9)), entries: map[uint64]bool{}, taken: map[uint64]bool{}}
	for range 1 + e.IntN(4) {
		e.starts = append(e.starts, e.size)
		e.symbols = append(e.symbols, arch.Symbol{Addr: elfreloc.Addr{Section: entriesText, Offset: e.size}, Func: true})
		e.size += uint64(20 + e.IntN(80))
	}
	for _, s := range e.starts {
		e.add(s)
	}
	if label := e.Uint64N(e.size + 1); e.IntN(3) == 0 && !e.entries[label] {
		e.add(label)
		e.symbols = append(e.symbols, arch.Symbol{Addr: elfreloc.Addr{Section: entriesText, Offset: label}})
		slices.SortFunc(e.symbols, func(a, b arch.Symbol) int { return int(a.Offset) - int(b.Offset) })
	}
	e.symbols = append(e.symbols, arch.Symbol{Addr: elfreloc.Addr{Section: entriesOther}, Func: true})
	for i := range e.starts {
		_, end := e.function(e.starts[i])
		for e.code = append(e.code, 0x90); uint64(len(e.code))+9 < end; {
			e.instruction()
		}
		for uint64(len(e.code)) < end {
			e.code = append(e.code, 0x90)
		}
	}
	for i := range e.IntN(3) { // data
		to := e.destination()
		r := elfreloc.Relocation{Offset: uint64(8 * i), Type: uint32(elf.R_X86_64_64), Addend: int64(e.IntN(2))}
		if e.IntN(4) == 0 {
			r.Type = uint32(elf.R_X86_64_16)
			e.take(to + uint64(r.Addend))
		} else {
			e.add(to + uint64(r.Addend))
		}
		e.refs = append(e.refs, arch.CodeRef{Relocation: r, Section: entriesData, To: elfreloc.Addr{Section: entriesText, Offset: to}})
	}
	return e
}

// find returns what a flow finds.
func (e *randomEntries) find(t *testing.T) (entries, taken map[uint64]bool) {
	t.Helper()
	f := newFlow(arch.ObjectCode{
		Text: func(int) (arch.Text, error) { return arch.Text{Code: e.code}, nil }, Symbols: e.symbols, Refs: e.refs,
	})
	expect.OK(t, f.prepare(entriesText))
	entries, taken = map[uint64]bool{}, map[uint64]bool{}
	for at := range e.size {
		if f.entries.has(at) || f.guesses.has(at) {
			entries[at] = true
		}
		if f.taken.has(at) {
			taken[at] = true
		}
	}
	return entries, taken
}

func sortedKeys(m map[uint64]bool) string { return fmt.Sprint(slices.Sorted(maps.Keys(m))) }

// TestRandomEntries compares where code may be entered with what random functions refer to. The
// same functions behind a byte that is no instruction have these entries too, among others.
func TestRandomEntries(t *testing.T) {
	for seed := range uint64(2000) {
		e := newRandomEntries(seed)
		entries, taken := e.find(t)
		expect.Equal(t, sortedKeys(e.entries), sortedKeys(entries), "entries of seed %d", seed)
		expect.Equal(t, sortedKeys(e.taken), sortedKeys(taken), "functions whose parts are taken, of seed %d", seed)
		for _, s := range e.starts {
			e.code[s] = 0x06
		}
		more, moreTaken := e.find(t)
		for at := range e.size {
			if entries[at] && !more[at] || taken[at] && !moreTaken[at] {
				t.Errorf("seed %d: %#x is missing behind a byte that is no instruction", seed, at)
			}
		}
		if t.Failed() {
			t.Fatalf("starts %x, code % x", e.starts, e.code)
		}
	}
}
