package limits

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"strings"
)

// records has n/16 records, each of another site, all of one probe.
func records(n int) []byte {
	count := n / 17
	s := newSymbols()
	s.add("main", global|function, 2, 0x1000, uint64(count))
	s.add("sdt_shop___placed", global|byte(elf.STT_OBJECT), 3, dataAddress, 8)
	return recorded(count, s, func(int) uint64 { return dataAddress }).bytes()
}

// recorded returns an image of records, at each of its bytes of code.
func recorded(count int, s *symbols, probe func(i int) uint64) *file {
	f := image(max(count, 1000), s)
	le := binary.LittleEndian
	data := make([]byte, 0, 16*count)
	for i := range count {
		data = le.AppendUint64(data, probe(i))
		data = le.AppendUint64(data, uint64(0x1000+i))
	}
	f.add(section{name: ".data", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, addr: dataAddress, data: make([]byte, 8*count+8)})
	f.add(section{name: "sdt_instances_set", kind: elf.SHT_PROGBITS, flags: elf.SHF_ALLOC | elf.SHF_WRITE, addr: 0x50000000, data: data})
	return f
}

// dataAddress is where probe objects are.
const dataAddress = 0x40000000

// recordedProbes has a probe for each record, with names that are ends of one.
func recordedProbes(n int) []byte {
	const prefix = "sdt_"
	count := n / (17 + len(prefix) + elf.Sym64Size)
	s := newSymbols()
	s.names = []byte("\x00" + strings.Repeat(prefix, count) + "end\x00")
	for i := range count {
		s.named(1+i*len(prefix), global|byte(elf.STT_OBJECT), 3, uint64(dataAddress+8*i), 8)
	}
	return recorded(count, s, func(i int) uint64 { return uint64(dataAddress + 8*i) }).bytes()
}

// namedFunctions has a function for each record, with names that are ends of one.
func namedFunctions(n int) []byte {
	count := n / (17 + 1 + elf.Sym64Size)
	s := newSymbols()
	s.names = []byte("\x00" + strings.Repeat("f", count) + "\x00")
	for i := range count {
		s.named(1+i, global|function, 2, uint64(0x1000+i), 1)
	}
	s.add("sdt_shop___placed", global|byte(elf.STT_OBJECT), 3, dataAddress, 8)
	return recorded(count, s, func(int) uint64 { return dataAddress }).bytes()
}

// longFunction has one function with a long name that holds all records.
func longFunction(n int) []byte {
	count := n / 2 / 17
	s := newSymbols()
	s.add(strings.Repeat("f", min(n/2, 1<<20-1)), global|function, 2, 0x1000, uint64(count))
	s.add("sdt_shop___placed", global|byte(elf.STT_OBJECT), 3, dataAddress, 8)
	return recorded(count, s, func(int) uint64 { return dataAddress }).bytes()
}

// debugged returns an object or image with a few sites and debug information.
func debugged(kind elf.Type, info, abbrev, line []byte) []byte {
	var f *file
	if kind == elf.ET_REL {
		f = object(calls(8), callsOf(8, 2, false), one(40, stub))
	} else {
		s := newSymbols()
		s.add("main", global|function, 2, 0x1000, 1000)
		s.add("sdt_shop___placed", global|byte(elf.STT_OBJECT), 3, dataAddress, 8)
		f = recorded(8, s, func(int) uint64 { return dataAddress })
	}
	f.add(section{name: ".debug_info", kind: elf.SHT_PROGBITS, data: info})
	f.add(section{name: ".debug_abbrev", kind: elf.SHT_PROGBITS, data: abbrev})
	f.add(section{name: ".debug_line", kind: elf.SHT_PROGBITS, data: line})
	return f.bytes()
}

// Tags, attributes and forms of DWARF 4.
const (
	tagCompileUnit, tagSubprogram, tagInlined, tagBlock, tagPointer, tagParameter = 0x11, 0x2e, 0x1d, 0x0b, 0x0f, 0x05
	atName, atStmtList, atLowPC, atHighPC, atType, atOrigin, atExternal           = 0x03, 0x10, 0x11, 0x12, 0x49, 0x31, 0x3f
	formAddr, formData4, formString, formSecOffset, formRef4, formPresent         = 0x01, 0x06, 0x08, 0x17, 0x13, 0x19
)

// abbrev returns an abbreviation: pairs of attribute and form follow.
func abbrev(code, tag byte, children bool, pairs ...byte) []byte {
	b := []byte{code, tag, 0}
	if children {
		b[2] = 1
	}
	return append(append(b, pairs...), 0, 0)
}

// unit returns a compile unit of entries, the first of which is of code 1: with a line
// table at 0, and addresses from 0x1000 on.
func unit(entries []byte) []byte {
	le := binary.LittleEndian
	b := []byte{1}
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, 0x1000)
	b = le.AppendUint32(b, 1<<20)
	b = append(b, entries...)
	head := le.AppendUint32(nil, uint32(len(b)+7))
	head = append(head, 4, 0, 0, 0, 0, 0, 8)
	return append(head, b...)
}

func unitAbbrev(children bool) []byte {
	return abbrev(1, tagCompileUnit, children, atStmtList, formSecOffset, atLowPC, formAddr, atHighPC, formData4)
}

// lineTable returns a line table of n rows of one byte each.
func lineTable(n int) []byte {
	le := binary.LittleEndian
	header := []byte{1, 1, 1, 0xfb, 14, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 'a', '.', 'c', 0, 0, 0, 0, 0}
	program := []byte{0, 9, 2, 0, 0x10, 0, 0, 0, 0, 0, 0}
	for range n {
		program = append(program, 0x20)
	}
	program = append(program, 2, 1, 0, 1, 1)
	b := le.AppendUint32(nil, uint32(2+4+len(header)+len(program)))
	b = le.AppendUint16(b, 4)
	b = le.AppendUint32(b, uint32(len(header)))
	return append(append(b, header...), program...)
}

// rows returns a line table of many rows.
func rows(kind elf.Type) func(n int) []byte {
	return func(n int) []byte { return debugged(kind, unit(nil), unitAbbrev(false), lineTable(n)) }
}

// units share a line table.
func units(kind elf.Type) func(n int) []byte {
	return func(n int) []byte {
		one := unit(nil)
		return debugged(kind, []byte(strings.Repeat(string(one), n/2/len(one))), unitAbbrev(false), lineTable(n/2))
	}
}

// nested has entries of one byte that lie in each other.
func nested(kind elf.Type, tag byte) func(n int) []byte {
	return func(n int) []byte {
		table := append(unitAbbrev(true), abbrev(2, tag, true)...)
		return debugged(kind, unit([]byte(strings.Repeat("\x02", n))), append(table, 0), lineTable(8))
	}
}

// inlined are functions that cover all code, in each other.
func inlined(kind elf.Type) func(n int) []byte {
	return func(n int) []byte {
		table := append(unitAbbrev(true), abbrev(2, tagSubprogram, true, atLowPC, formAddr, atHighPC, formData4, atName, formString)...)
		table = append(table, abbrev(3, tagInlined, true, atLowPC, formAddr, atHighPC, formData4, atOrigin, formRef4)...)
		le := binary.LittleEndian
		entry := func(code byte) []byte {
			return le.AppendUint32(le.AppendUint64([]byte{code}, 0x1000), 1<<20)
		}
		b := append(entry(2), "f\x00"...)
		origin := uint32(11 + 17)
		for len(b) < n {
			b = le.AppendUint32(append(b, entry(3)...), origin)
		}
		return debugged(kind, unit(b), append(table, 0), lineTable(8))
	}
}

// flat is inlined, of functions beside each other.
func flat(kind elf.Type) func(n int) []byte {
	return func(n int) []byte {
		table := append(unitAbbrev(true), abbrev(2, tagSubprogram, false, atLowPC, formAddr, atHighPC, formData4, atName, formString)...)
		le := binary.LittleEndian
		var b []byte
		for i := 0; len(b) < n; i++ {
			b = le.AppendUint32(le.AppendUint64(append(b, 2), uint64(0x1000+i%500)), uint32(1<<20-i%1000))
			b = append(b, fmt.Sprintf("f%x\x00", i)...)
		}
		return debugged(kind, unit(b), append(table, 0), lineTable(8))
	}
}

// typed are declarations of the stub whose parameter is a chain of types.
func typed(n int) []byte {
	table := append(unitAbbrev(true), abbrev(2, tagSubprogram, true, atName, formString, atExternal, formPresent)...)
	table = append(table, abbrev(3, tagParameter, false, atType, formRef4)...)
	table = append(table, abbrev(4, tagPointer, false, atType, formRef4)...)
	table = append(table, abbrev(5, 0x16, false, atType, formRef4)...) // DW_TAG_typedef
	le := binary.LittleEndian
	var b []byte
	const start = 11 + 17
	for len(b) < n/2 { // each typedef is of the next
		b = le.AppendUint32(append(b, 5), uint32(start+len(b)+5))
	}
	b = append(b, 4, start, 0, 0, 0)
	for len(b) < n {
		b = append(append(b, 2), stub+"\x00"...)
		for range 10 {
			b = le.AppendUint32(append(b, 3), start)
		}
		b = append(b, 0)
	}
	return debugged(elf.ET_REL, unit(b), append(table, 0), lineTable(8))
}
