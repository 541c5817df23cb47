package patch

import (
	"cmp"

	"sdtconvert/arch"
	"sdtconvert/linkerset"
)

// Options say how sites are disabled and recorded: see DefaultOptions. They are not
// modified, so that several goroutines may use the same.
type Options struct {
	Names  Names
	Layout linkerset.Layout // of records
	// AutoLayout chooses the format of Layout by the target of each object: see For.
	AutoLayout  bool
	ProbePrefix string // of probe objects' names; the probe id follows; "" for sdt_
	NoRecords   bool   // only disable
	// DropRelocations deletes the relocations of disabled sites, instead of
	// making them R_*_NONE. Then no linker keeps records and text together.
	DropRelocations bool
	// ReturnThunk is what to jump to instead of returning. Without one, the machine's own is
	// used in objects that refer to it.
	ReturnThunk arch.ThunkChoice
	// Stapsdt adds the notes that tracers of user space find probes by, and gives
	// the sites forms that they arm well.
	Stapsdt bool
	// AutoStapsdt sets Stapsdt for the objects of LinuxProgram, and for no others.
	AutoStapsdt bool
	// DTrace adds those that DTrace for Linux finds sites by, and gives the sites the
	// same forms.
	DTrace bool
	// DOF, where it is not nil, has sites disabled for DTrace's object format, and nothing
	// recorded: see Plan.DOFSites.
	DOF *DOF
	// Semaphores says which probes get semaphores, if there are notes. Is-enabled tests
	// load them then. Those that guards read get their names if Names.Guards says so.
	Semaphores Semaphores
	// Prototypes tell the arguments of stubs for these notes, where nothing in
	// an object does.
	Prototypes Prototypes
	// ProbeSource knows what other files of the link say about probes that an
	// object does not define; nil for nothing.
	ProbeSource ProbeSource
}

// DefaultOptions are for the SDT(9) macros: stubs and probe objects are called as
// these call them, and records are linkerset.Pairs in sections of their own names. The
// zero Options mean the same.
func DefaultOptions() Options { return Options{}.withDefaults() }

// defaultProbePrefix begins the names of FreeBSD's probe objects.
const defaultProbePrefix = "sdt_"

// withDefaults returns opts with a default in the place of what is required and missing.
func (opts Options) withDefaults() Options {
	opts.Names = opts.Names.orDefault()
	opts.ProbePrefix = cmp.Or(opts.ProbePrefix, defaultProbePrefix)
	return opts
}

// HasNotes reports whether there are notes of any kind.
func (opts Options) HasNotes() bool { return opts.Stapsdt || opts.DTrace }

// MayHaveNotes reports whether some object gets notes of any kind.
func (opts Options) MayHaveNotes() bool { return opts.HasNotes() || opts.AutoStapsdt }

// armable reports whether the sites are armed with breakpoints: by uprobes, which find
// them through notes, or by FreeBSD's kernel. Its handler of breakpoints steps over one byte, and its function
// boundary tracing owns each return. So the first byte of a site has to be a NOP of one byte.
func (opts Options) armable() bool {
	return opts.HasNotes() || opts.Layout.Format == linkerset.FreeBSD
}
