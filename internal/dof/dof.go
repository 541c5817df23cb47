// Package dof writes and reads DTrace's object format: what a program tells the kernel of its
// probes when it starts, on the systems whose kernel has DTrace.
//
// The format is that of illumos' and FreeBSD's <sys/dtrace.h> (dof_hdr_t and what stands
// behind it), and the order of sections that of libdtrace (dt_dof.c): a header, headers of
// sections, their data, and the strings last. Of a provider there are
//
//	PROBES    dof_probe_t, one for each pair of a probe and a function with its sites
//	PRARGS    which argument of the probe each translated one is, a byte each
//	PROFFS    where sites are: 32-bit distances from the function
//	PRENOFFS  the same of is-enabled tests, if there are any
//	PROVIDER  dof_provider_t, which names these
//	RELTAB    dof_relodesc_t, one for each probe
//	URELHDR   dof_relohdr_t, which names RELTAB and what it is about, PROBES
//
// Only a linker knows where a function is. In an object, relocations have it fill these
// fields in (Fixup), and RELTAB tells the kernel what it has to add.
package dof

import (
	"encoding/binary"
	"fmt"
	"math"
)

// SectionName is the name of the section of an object, and Symbol a symbol at its start, or LazySymbol
// where the format is to be registered by other means than a constructor.
const (
	SectionName = ".SUNW_dof"
	Symbol      = "__SUNW_dof"
	LazySymbol  = "___SUNW_dof"
	// SectionType is SHT_SUNW_dof, and SectionAlign the alignment in bytes.
	SectionType  = 0x6ffffff4
	SectionAlign = 8
	// AliasPrefix begins the symbols by which dtrace -G has DOF refer to functions; a
	// number, ".", and the function's name follow.
	AliasPrefix = "$dtrace"
)

// Relocation is how a kernel reads what a Fixup has left in a field.
type Relocation uint32

const (
	SetX     Relocation = 1 // an address as linked, to which the load address is added (DOF_RELO_SETX)
	Relative Relocation = 2 // a distance from the field itself (FreeBSD's DOF_RELO_DOFREL)
)

// Format is what is the same for all of a file.
type Format struct {
	Order binary.ByteOrder
	LP64  bool
	Relocation
}

// Attribute is a dof_attr_t: the stability of names and of data, and the class that they
// depend on, in DTrace's numbers.
type Attribute struct{ Name, Data, Class byte }

// Provider is a provider. One without probes, or a probe without sites, may not be
// written: kernels refuse all of a file for it.
type Provider struct {
	Name       string
	Attributes [5]Attribute // of the provider, modules, functions, names, arguments
	Probes     []Probe
}

// Probe is a probe, with the functions that have sites of it.
type Probe struct {
	Name       string   // with dashes
	Native     []string // the types of its arguments
	Translated []string // of those that D programs see
	Mapping    []byte   // the index in Native of each of these
	Functions  []Function
}

// Function is a function with sites of a probe.
type Function struct {
	Name    string
	Symbol  string   // that the linker knows its start by
	Offsets []uint32 // of sites from there, in bytes
	Enabled []uint32 // of is-enabled tests
}

// Fixup is a field of 8 bytes that a linker fills in: with the address of a symbol, or the
// distance of the symbol from the field.
type Fixup struct {
	Offset uint64 // from the start of the file
	Symbol string
}

// Types of sections (DOF_SECT_*).
const (
	sectStrtab   = 8
	sectRelTab   = 10
	sectURelHdr  = 12
	sectProvider = 15
	sectProbes   = 16
	sectPrArgs   = 17
	sectPrOffs   = 18
	sectPrEnOffs = 26
)

// Sizes in bytes.
const (
	headerSize        = 64
	sectionHeaderSize = 32
	probeSize         = 48
	relocSize         = 24
)

// flagLoad is DOF_SECF_LOAD.
const flagLoad = 1

// What dtrace(1) of all systems has in its header for the D intermediate format: version 2, 8 integer and 8
// tuple registers.
var dif = []byte{2, 8, 8}

// Write writes a file. The error is about numbers that the format has no room for.
func Write(f Format, providers []Provider) ([]byte, []Fixup, error) {
	w := &writer{Format: f, strings: []byte{0}, version: 1}
	w.section(sectStrtab, 1, 0, nil)
	for i := range providers {
		w.provider(&providers[i])
	}
	if w.err != nil {
		return nil, nil, w.err
	}
	return w.file(), w.fixups, nil
}

type section struct {
	typ, align, entsize uint32
	offset, size        uint64 // in data, but for the strings
}

type writer struct {
	Format
	version  byte
	sections []section
	data     []byte
	strings  []byte
	fixups   []Fixup // from the start of data
	err      error
}

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// section adds a section and returns its index.
func (w *writer) section(typ, align, entsize uint32, data []byte) uint32 {
	w.data = append(w.data, make([]byte, -len(w.data)&(int(align)-1))...)
	w.sections = append(w.sections, section{typ, align, entsize, uint64(len(w.data)), uint64(len(data))})
	w.data = append(w.data, data...)
	return uint32(len(w.sections) - 1)
}

// string adds a string, and returns its offset. "" is at 0.
func (w *writer) string(s string) uint32 {
	if s == "" {
		return 0
	}
	at := uint32(len(w.strings))
	w.strings = append(append(w.strings, s...), 0)
	return at
}

// list adds strings one behind the other, and returns the offset of the first.
func (w *writer) list(texts []string) uint32 {
	at := uint32(len(w.strings))
	for _, s := range texts {
		w.string(s)
	}
	return at
}

func (w *writer) u16(b []byte, v uint16) []byte    { return w.append(b, v) }
func (w *writer) u32(b []byte, v ...uint32) []byte { return w.append(b, v) }
func (w *writer) u64(b []byte, v ...uint64) []byte { return w.append(b, v) }

// append appends integers in the byte order of the file. It cannot fail: their sizes are fixed.
func (w *writer) append(b []byte, v any) []byte {
	b, _ = binary.Append(b, w.Order, v)
	return b
}

// tables are the sections of a provider while they grow.
type tables struct {
	probes, args, offsets, enabled, relocs []byte
	symbols                                []string // of the probes
}

func (w *writer) provider(p *Provider) {
	t := &tables{}
	for i := range p.Probes {
		w.probe(t, &p.Probes[i])
	}
	probes := w.section(sectProbes, 8, probeSize, t.probes)
	start := w.sections[probes].offset
	for i, symbol := range t.symbols {
		w.fixups = append(w.fixups, Fixup{start + uint64(i*probeSize), symbol})
	}
	args := w.section(sectPrArgs, 1, 1, t.args)
	offsets := w.section(sectPrOffs, 4, 4, t.offsets)
	enabled := uint32(0)
	if len(t.enabled) > 0 {
		enabled, w.version = w.section(sectPrEnOffs, 4, 4, t.enabled), 2
	}
	const strtab = 0
	record := w.u32(nil, strtab, probes, args, offsets, w.string(p.Name))
	for _, a := range p.Attributes {
		record = w.u32(record, uint32(a.Name)<<24|uint32(a.Data)<<16|uint32(a.Class)<<8)
	}
	w.section(sectProvider, 4, 0, w.u32(record, enabled))
	relocs := w.section(sectRelTab, 8, relocSize, t.relocs)
	w.section(sectURelHdr, 4, 0, w.u32(nil, strtab, relocs, probes))
}

func (w *writer) probe(t *tables, p *Probe) {
	if len(p.Native) > math.MaxUint8 || len(p.Translated) > math.MaxUint8 || len(p.Mapping) != len(p.Translated) {
		w.fail("probe %s has %d arguments and %d translated ones", p.Name, len(p.Native), len(p.Translated))
	}
	name, native, translated := w.string(p.Name), w.list(p.Native), w.list(p.Translated)
	argument := uint32(len(t.args))
	t.args = append(t.args, p.Mapping...)
	for i := range p.Functions {
		f := &p.Functions[i]
		if len(f.Offsets) > math.MaxUint16 || len(f.Enabled) > math.MaxUint16 {
			w.fail("probe %s has %d sites and %d tests in function %s, and there is room for %d each", p.Name, len(f.Offsets), len(f.Enabled), f.Name, math.MaxUint16)
		}
		function := w.string(f.Name)
		symbol := function
		if f.Symbol != f.Name {
			symbol = w.string(f.Symbol)
		}
		t.relocs = w.u32(t.relocs, symbol, uint32(w.Relocation))
		t.relocs = w.u64(t.relocs, uint64(len(t.probes)), 0)
		t.symbols = append(t.symbols, f.Symbol)

		b := w.u64(t.probes, 0)
		b = w.u32(b, function, name, native, translated, argument, uint32(len(t.offsets)/4))
		b = w.u16(append(b, byte(len(p.Native)), byte(len(p.Translated))), uint16(len(f.Offsets)))
		b = w.u32(b, uint32(len(t.enabled)/4))
		b = w.u16(w.u16(b, uint16(len(f.Enabled))), 0)
		t.probes = w.u32(b, 0)
		t.offsets = w.u32(t.offsets, f.Offsets...)
		t.enabled = w.u32(t.enabled, f.Enabled...)
	}
}

// file puts all together. Offsets of sections are from the start of the file.
func (w *writer) file() []byte {
	start := uint64(headerSize + len(w.sections)*sectionHeaderSize)
	end := start + uint64(len(w.data))
	total := end + uint64(len(w.strings))
	w.sections[0].offset, w.sections[0].size = end-start, uint64(len(w.strings))
	for i := range w.fixups {
		w.fixups[i].Offset += start
	}
	model, encoding := byte(1), byte(1)
	if w.LP64 {
		model = 2
	}
	if w.u16(nil, 1)[1] == 1 {
		encoding = 2
	}
	b := append([]byte{0x7f, 'D', 'O', 'F', model, encoding, w.version}, dif...)
	b = append(b, make([]byte, 16-len(b))...)
	b = w.u32(b, 0, headerSize, sectionHeaderSize, uint32(len(w.sections)))
	b = w.u64(b, headerSize, total, total, 0)
	for _, s := range w.sections {
		b = w.u64(w.u32(b, s.typ, s.align, flagLoad, s.entsize), start+s.offset, s.size)
	}
	return append(append(b, w.data...), w.strings...)
}
