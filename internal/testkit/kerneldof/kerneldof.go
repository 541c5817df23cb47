// Package kerneldof reads DTrace's object format and refuses what kernels refuse of it. It is
// an oracle of its own for what internal/dof writes: it is made from the rules of
// illumos' and FreeBSD's dtrace.c (dtrace_dof_slurp, dtrace_helper_provider_validate) and
// fasttrap.c (fasttrap_meta_provide, fasttrap_meta_create_probe), and shares nothing with
// the writer.
//
// FreeBSD 12.1's kernel refuses what Read refuses, or makes no probe of it, but for some
// files that it misreads or that no tool writes, which Read refuses too: mappings to an
// argument that does not exist, classes of attributes above Common, probes without a name,
// a size of the file other than that to load, other sizes of the header and of entries, a
// provider that is aligned to less than 4, tests in version 1, and relocations of no type
// or without a name.
package kerneldof

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
)

// Kernel is what kernels differ in.
type Kernel struct {
	Function int  // DTRACE_FUNCNAMELEN: the longest name of a function, bytes with its NUL
	Relative bool // knows DOF_RELO_DOFREL
}

// The kernels.
var (
	Illumos = Kernel{Function: 128}
	FreeBSD = Kernel{Function: 192, Relative: true}
)

// Probe is a probe in a function.
type Probe struct {
	Provider, Function, Name string
	Attributes               [5]uint32 // dof_attr_t, of the provider
	Native, Translated       []string  // types
	Mapping                  []byte
	Offsets, Enabled         []uint32
	Addr                     uint64 // as the file has it
	Field                    uint64 // where it has that, from the start of the file
	Symbol                   string
	Relative                 bool
}

// Start returns where the function begins, for a file that is loaded at an address, of a
// module that is loaded at another.
func (p *Probe) Start(file, module uint64) uint64 {
	if p.Relative {
		return p.Addr + file + p.Field
	}
	return p.Addr + module
}

// File is a file.
type File struct {
	Version byte
	LP64    bool
	Probes  []Probe
}

// Types of sections.
const (
	strtab   = 8
	reltab   = 10
	urelhdr  = 12
	provider = 15
	probes   = 16
	prargs   = 17
	proffs   = 18
	prenoffs = 26
)

type section struct {
	typ, align, flags, entsize uint32
	offset, size               uint64
}

type reader struct {
	Kernel
	b        []byte
	order    binary.ByteOrder
	sections []section
	file     File
}

// Read reads a file, and refuses what the kernel would.
func Read(b []byte, k Kernel) (*File, error) {
	r := &reader{Kernel: k, b: b}
	if err := r.header(); err != nil {
		return nil, err
	}
	for i := range r.sections {
		s := &r.sections[i]
		if s.typ != provider {
			continue
		}
		if err := r.provider(s); err != nil {
			return nil, fmt.Errorf("section %d: %w", i, err)
		}
	}
	for i := range r.sections {
		if r.sections[i].typ != urelhdr {
			continue
		}
		if err := r.relocate(&r.sections[i]); err != nil {
			return nil, fmt.Errorf("section %d: %w", i, err)
		}
	}
	return &r.file, nil
}

func (r *reader) header() error {
	b := r.b
	if len(b) < 64 || string(b[:4]) != "\x7fDOF" {
		return fmt.Errorf("no DOF")
	}
	switch b[5] {
	case 1:
		r.order = binary.LittleEndian
	case 2:
		r.order = binary.BigEndian
	default:
		return fmt.Errorf("encoding %d", b[5])
	}
	r.file.Version, r.file.LP64 = b[6], b[4] == 2
	if b[4] != 1 && b[4] != 2 || b[6] < 1 || b[6] > 2 || b[7] != 2 || b[8] > 8 || b[9] > 8 || !bytes.Equal(b[10:16], make([]byte, 6)) {
		return fmt.Errorf("identification % x", b[:16])
	}
	flags, hdrsize, secsize, n := r.u32(16), r.u32(20), r.u32(24), r.u32(28)
	secoff, loadsz, filesz := r.u64(32), r.u64(40), r.u64(48)
	if flags != 0 || hdrsize != 64 || secsize != 32 || loadsz > filesz || filesz != uint64(len(b)) || secoff%8 != 0 {
		return fmt.Errorf("flags %#x, sizes %d, %d, %d of %d, sections at %d", flags, hdrsize, secsize, loadsz, filesz, secoff)
	}
	if secoff > loadsz || uint64(n)*32 > loadsz-secoff {
		return fmt.Errorf("%d sections at %d", n, secoff)
	}
	for i := range uint64(n) {
		at := int(secoff + i*32)
		s := section{r.u32(at), r.u32(at + 4), r.u32(at + 8), r.u32(at + 12), r.u64(at + 16), r.u64(at + 24)}
		if err := s.check(loadsz); err != nil {
			return fmt.Errorf("section %d: %w", i, err)
		}
		if s.typ == strtab && (s.size == 0 || b[s.offset+s.size-1] != 0) {
			return fmt.Errorf("section %d: strings without end", i)
		}
		r.sections = append(r.sections, s)
	}
	return nil
}

func (s *section) check(loadsz uint64) error {
	switch s.typ {
	case strtab, reltab, urelhdr, provider, probes, prargs, proffs, prenoffs:
	default:
		return fmt.Errorf("type %d", s.typ)
	}
	switch {
	case s.flags&1 == 0:
		return fmt.Errorf("is not loaded")
	case s.align == 0 || s.align&(s.align-1) != 0 || s.offset%uint64(s.align) != 0:
		return fmt.Errorf("at %d, aligned to %d", s.offset, s.align)
	case s.offset > loadsz || s.size > loadsz-s.offset:
		return fmt.Errorf("%d bytes at %d", s.size, s.offset)
	}
	return nil
}

func (r *reader) u16(at int) uint16 { return r.order.Uint16(r.b[at:]) }
func (r *reader) u32(at int) uint32 { return r.order.Uint32(r.b[at:]) }
func (r *reader) u64(at int) uint64 { return r.order.Uint64(r.b[at:]) }

// at returns a section of a type that has an alignment.
func (r *reader) at(index, typ, align uint32) (*section, error) {
	if int64(index) >= int64(len(r.sections)) || r.sections[index].typ != typ || r.sections[index].align != align {
		return nil, fmt.Errorf("section %d is not of type %d and aligned to %d", index, typ, align)
	}
	return &r.sections[index], nil
}

func (r *reader) string(s *section, at uint32) (string, error) {
	if uint64(at) >= s.size {
		return "", fmt.Errorf("string at %d of %d", at, s.size)
	}
	b := r.b[s.offset+uint64(at):]
	return string(b[:bytes.IndexByte(b, 0)]), nil
}

// tables are the sections of a provider.
type tables struct{ strings, probes, args, offsets, enabled *section }

func (r *reader) provider(s *section) error {
	if s.size < 44 || s.align != 4 {
		return fmt.Errorf("a provider of %d bytes, aligned to %d", s.size, s.align)
	}
	at := int(s.offset)
	var t tables
	var err error
	for _, of := range []struct {
		into       **section
		at         int
		typ, align uint32
	}{{&t.strings, 0, strtab, 1}, {&t.probes, 4, probes, 8}, {&t.args, 8, prargs, 1}, {&t.offsets, 12, proffs, 4}} {
		if *of.into, err = r.at(r.u32(at+of.at), of.typ, of.align); err != nil {
			return err
		}
	}
	if index := r.u32(at + 40); index != 0 {
		if t.enabled, err = r.at(index, prenoffs, 4); err != nil {
			return err
		}
		if t.enabled.entsize != 4 || r.file.Version < 2 {
			return fmt.Errorf("tests of %d bytes in version %d", t.enabled.entsize, r.file.Version)
		}
	}
	if e := uint64(t.probes.entsize); e < 48 || e > t.probes.size || e%8 != 0 || t.args.entsize != 1 || t.offsets.entsize != 4 {
		return fmt.Errorf("entries of %d, %d and %d bytes", e, t.args.entsize, t.offsets.entsize)
	}
	p := Probe{}
	if p.Provider, err = r.string(t.strings, r.u32(at+16)); err != nil || p.Provider == "" || len(p.Provider) >= 64 {
		return fmt.Errorf("provider %q: %v", p.Provider, err)
	}
	if p.Provider == "pid" || len(p.Provider)+10 >= 64 { // of the number of a process
		return fmt.Errorf("fasttrap makes no provider %q", p.Provider)
	}
	for i := range p.Attributes {
		p.Attributes[i] = r.u32(at + 20 + 4*i)
		if a := p.Attributes[i]; a>>24 > 7 || a>>16&0xff > 7 || a>>8&0xff > 5 {
			return fmt.Errorf("attributes %#x", a)
		}
	}
	for off := uint64(0); off+uint64(t.probes.entsize) <= t.probes.size; off += uint64(t.probes.entsize) {
		if err := r.probe(t, p, t.probes.offset+off); err != nil {
			return fmt.Errorf("provider %s: %w", p.Provider, err)
		}
	}
	return nil
}

func (r *reader) probe(t tables, p Probe, field uint64) (err error) {
	at := int(field)
	p.Field, p.Addr = field, r.u64(at)
	if p.Function, err = r.string(t.strings, r.u32(at+8)); err != nil || len(p.Function) >= r.Kernel.Function {
		return fmt.Errorf("function %q: %v", p.Function, err)
	}
	if p.Name, err = r.string(t.strings, r.u32(at+12)); err != nil || p.Name == "" || len(p.Name) >= 64 {
		return fmt.Errorf("probe %q: %v", p.Name, err)
	}
	nargc, xargc := int(r.b[at+32]), int(r.b[at+33])
	if p.Native, err = r.types(t.strings, r.u32(at+16), nargc); err != nil {
		return err
	}
	if p.Translated, err = r.types(t.strings, r.u32(at+20), xargc); err != nil {
		return err
	}
	first := uint64(r.u32(at + 24))
	if first+uint64(xargc) > t.args.size {
		return fmt.Errorf("probe %s: %d arguments at %d of %d", p.Name, xargc, first, t.args.size)
	}
	p.Mapping = r.b[t.args.offset+first:][:xargc]
	for _, from := range p.Mapping {
		if int(from) >= nargc {
			return fmt.Errorf("probe %s: argument %d of %d", p.Name, from, nargc)
		}
	}
	if p.Offsets, err = r.numbers(t.offsets, r.u32(at+28), r.u16(at+34)); err != nil {
		return err
	}
	if p.Enabled, err = r.numbers(t.enabled, r.u32(at+36), r.u16(at+40)); err != nil {
		return err
	}
	if len(p.Offsets)+len(p.Enabled) == 0 {
		return fmt.Errorf("probe %s has no site in %s", p.Name, p.Function)
	}
	for _, offsets := range [][]uint32{p.Offsets, p.Enabled} {
		if len(slices.Compact(slices.Sorted(slices.Values(offsets)))) != len(offsets) {
			return fmt.Errorf("fasttrap makes no probe %s in %s: a site is there twice", p.Name, p.Function)
		}
	}
	r.file.Probes = append(r.file.Probes, p)
	return nil
}

func (r *reader) types(s *section, at uint32, n int) (all []string, err error) {
	for range n {
		text, err := r.string(s, at)
		if err != nil || len(text) >= 128 {
			return nil, fmt.Errorf("type %q: %v", text, err)
		}
		all, at = append(all, text), at+uint32(len(text))+1
	}
	return all, nil
}

func (r *reader) numbers(s *section, first uint32, n uint16) (all []uint32, err error) {
	if s == nil {
		if first != 0 || n != 0 {
			return nil, fmt.Errorf("%d tests at %d of none", n, first)
		}
		return nil, nil
	}
	if (uint64(first)+uint64(n))*4 > s.size {
		return nil, fmt.Errorf("%d offsets at %d of %d bytes", n, first, s.size)
	}
	for i := range int(n) {
		all = append(all, r.u32(int(s.offset)+4*(int(first)+i)))
	}
	return all, nil
}

// relocate reads what is to be done to addresses.
func (r *reader) relocate(s *section) error {
	if s.size < 12 || s.align != 4 {
		return fmt.Errorf("relocations of %d bytes, aligned to %d", s.size, s.align)
	}
	at := int(s.offset)
	names, err := r.at(r.u32(at), strtab, 1)
	if err != nil {
		return err
	}
	list, err := r.at(r.u32(at+4), reltab, 8)
	if err != nil {
		return err
	}
	target, err := r.at(r.u32(at+8), probes, 8)
	if err != nil {
		return err
	}
	if list.entsize != 24 {
		return fmt.Errorf("relocations of %d bytes", list.entsize)
	}
	for off := uint64(0); off+24 <= list.size; off += 24 {
		at := int(list.offset + off)
		name, err := r.string(names, r.u32(at))
		if err != nil {
			return err
		}
		typ, field := r.u32(at+4), r.u64(at+8)
		if typ != 1 && (typ != 2 || !r.Relative) || field%8 != 0 || field >= target.size || target.size-field < 8 {
			return fmt.Errorf("relocation of type %d at %d", typ, field)
		}
		if err := r.name(target.offset+field, name, typ == 2); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) name(field uint64, symbol string, relative bool) error {
	for i := range r.file.Probes {
		if p := &r.file.Probes[i]; p.Field == field {
			p.Symbol, p.Relative = symbol, relative
			return nil
		}
	}
	return fmt.Errorf("relocation of no probe, at %d", field)
}
