// Package dof writes DTrace's object format: what a program tells the kernel of its
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

import "encoding/binary"

// SectionName is the name of the section of an object, and Symbol a symbol at its start, or LazySymbol
// where the format is to be registered by other means than a constructor.
const (
	SectionName = ".SUNW_dof"
	Symbol      = "__SUNW_dof"
	LazySymbol  = "___SUNW_dof"
	// SectionType is SHT_SUNW_dof, and SectionAlign the alignment in bytes.
	SectionType  = 0x6ffffff4
	SectionAlign = 8
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
