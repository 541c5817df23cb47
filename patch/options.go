package patch

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// Options say how the sites of any objects are to be disabled and recorded: what is asked for. The zero Options are the
// defaults of the command, which leave layout and notes to what each object is made for. Scan.Settings are what they decide
// for one object. Options are not modified, so that several goroutines may use the same.
type Options struct {
	Names Names // of stubs; without any, DefaultNames
	// Target is what all objects are made for, however they look, unless it is AnyTarget.
	Target Target
	// Layout is that of the records of all objects if it is not the zero Layout, or FixedLayout is set. Otherwise
	// the target of an object chooses the format.
	Layout      linkerset.Layout
	FixedLayout bool
	ProbePrefix string // of probe objects' names; the probe id follows; "" for sdt_
	NoRecords   bool   // only disable
	// DropRelocations deletes the relocations of disabled sites, instead of
	// making them R_*_NONE. Then no linker keeps records and text together.
	DropRelocations bool
	// ReturnThunk is what to jump to instead of returning. Without one, the machine's own is
	// used in objects that refer to it.
	ReturnThunk arch.ThunkChoice
	// Notes says whether there are notes that tracers of user space find probes by. With notes,
	// sites have forms that these arm well.
	Notes Notes
	// Functions says whether there are tables that name the function of each site in the memory of programs.
	Functions Functions
	// DTrace adds the notes by which DTrace for Linux finds sites, and gives the sites
	// the same forms.
	DTrace bool
	// DTraceForms disables sites as `dtrace -G` does (arch.DOFMachine). There are no records, no notes and no
	// semaphores then.
	DTraceForms bool
	// Also edits an object besides, after its sites; nil for nothing.
	Also func(p *Plan, e *elfreloc.Edit) error
	// AllSemaphores gives a semaphore to each probe that has sites and notes, and not only to those that the object tests.
	// Is-enabled tests load them if there are notes, and those that guards read get their names.
	AllSemaphores bool
	// GroupedNotes are notes in section groups, without SHF_LINK_ORDER, which `ld -r` of GNU ld takes beside those of compilers.
	GroupedNotes bool
	// ProbeSource knows what other files of the link say about probes that an
	// object does not define, for notes; nil for nothing.
	ProbeSource ProbeSource
	// LinkConverts says that the link converts the code that it generates, so that no warning
	// is due about intermediate code.
	LinkConverts bool
}

// Settings are what Options decide for one object. Fields without a comment are those of Options.
type Settings struct {
	Names           Names
	Target          Target // AnyTarget if nothing depends on it
	Layout          linkerset.Layout
	ProbePrefix     string
	NoRecords       bool
	DropRelocations bool
	ReturnThunk     arch.ThunkChoice
	Notes           bool // there are notes for tracers of user space
	Functions       bool // there are tables of functions
	DTrace          bool
	DTraceForms     bool
	Also            func(p *Plan, e *elfreloc.Edit) error
	AllSemaphores   bool
	GroupedNotes    bool
	ProbeSource     ProbeSource
	LinkConverts    bool
}

// Notes says which objects get notes for the tracers of Linux.
type Notes uint8

const (
	// AutoNotes are notes for objects of LinuxProgram, unless a layout or NoRecords says that the
	// records are for another reader.
	AutoNotes Notes = iota
	WithNotes
	WithoutNotes
)

// Functions says which objects get tables that name the function of each site.
type Functions uint8

const (
	// AutoFunctions are tables for objects that have notes for tracers of user space.
	AutoFunctions Functions = iota
	WithFunctions
	WithoutFunctions
)

// DefaultProbePrefix begins the names of FreeBSD's probe objects.
const DefaultProbePrefix = "sdt_"

func (opts Options) probePrefix() string { return cmp.Or(opts.ProbePrefix, DefaultProbePrefix) }

// Decide returns the settings for an object, which may be nil if Target says what it is made for.
func (opts Options) Decide(o *elfreloc.Object) Settings {
	s := Settings{
		Names: opts.Names, Target: opts.Target, Layout: opts.Layout, ProbePrefix: opts.probePrefix(),
		NoRecords: opts.NoRecords, DropRelocations: opts.DropRelocations, ReturnThunk: opts.ReturnThunk,
		DTrace: opts.DTrace, DTraceForms: opts.DTraceForms, Also: opts.Also, AllSemaphores: opts.AllSemaphores,
		GroupedNotes: opts.GroupedNotes, ProbeSource: opts.ProbeSource, LinkConverts: opts.LinkConverts,
	}
	if s.Target == AnyTarget && (!opts.hasFixedLayout() || opts.Notes == AutoNotes && opts.MayHaveNotes()) {
		s.Target = TargetOf(o)
	}
	if !opts.hasFixedLayout() && s.Target == FreeBSD {
		s.Layout.Format = linkerset.FreeBSD
	}
	s.Notes = opts.MayHaveNotes() && (opts.Notes == WithNotes || s.Target == LinuxProgram)
	if !s.hasNotes() {
		s.ProbeSource = nil
	}
	s.Functions = !opts.DTraceForms && (opts.Functions == WithFunctions || opts.Functions == AutoFunctions && s.Notes)
	return s
}

// hasFixedLayout reports whether the layout of records is that of Options for all objects.
func (opts Options) hasFixedLayout() bool {
	return opts.FixedLayout || opts.Layout != (linkerset.Layout{})
}

// MayHaveNotes reports whether objects of some target get notes for tracers of user space.
func (opts Options) MayHaveNotes() bool {
	return opts.Notes == WithNotes || opts.Notes == AutoNotes && !opts.hasFixedLayout() && !opts.NoRecords && !opts.DTraceForms
}

// StubTexts returns the texts of Names.StubTexts, and that of guards where these may have to be converted.
func (opts Options) StubTexts() [][]byte {
	texts := opts.Names.StubTexts()
	if opts.MayHaveNotes() {
		texts = append(texts, []byte(GuardPrefix))
	}
	return texts
}

// HasStub reports whether a symbol of an object has the name of a stub, or of a semaphore that guards read where these may
// have to be converted.
func (opts Options) HasStub(o *elfreloc.Object) (bool, error) {
	if has, err := opts.Names.HasStub(o); has || err != nil || !opts.MayHaveNotes() {
		return has, err
	}
	syms, err := o.Symbols()
	if err != nil {
		return false, err
	}
	for range syms.WithPrefix(GuardPrefix) {
		return true, nil
	}
	return false, nil
}

// hasNotes reports whether there are notes of any kind.
func (s *Settings) hasNotes() bool { return s.Notes || s.DTrace }

// armable reports whether the sites are armed with breakpoints: by uprobes, which find
// them through notes, or by FreeBSD's kernel. Its handler of breakpoints steps over one byte, and its function
// boundary tracing owns each return. So the first byte of a site has to be a NOP of one byte.
func (s *Settings) armable() bool {
	return s.hasNotes() || s.Layout.Format == linkerset.FreeBSD
}

// Target is what a relocatable object is made for, as far as the usual reader of its probes
// depends on it.
type Target uint8

const (
	// AnyTarget stands for what each object shows (TargetOf).
	AnyTarget Target = iota
	// LinuxProgram is an object for programs and libraries, whose probes the tracers of Linux find
	// by notes. Objects of systems that have no OSABI of their own count as this, too.
	LinuxProgram
	// LinuxKernel is an object for the kernel or a module. No kernel reads notes, and none
	// raises semaphores.
	LinuxKernel
	// FreeBSD is an object for FreeBSD, by the OSABI of its header.
	FreeBSD
)

// kernelSections are the sections that compilers, macros and objtool make in objects of Linux
// kernels. Names that end in a dash are beginnings of names.
var kernelSections = []string{
	".modinfo", "__ksymtab-", "___ksymtab-", "__ksymtab_strings", ".export_symbol", ".gnu.linkonce.this_module",
	"__mcount_loc", ".orc_unwind", ".orc_unwind_ip", ".orc_header", ".return_sites", ".retpoline_sites", ".call_sites",
	".ibt_endbr_seal", ".discard.addressable", ".discard.reachable", ".discard.unreachable", ".discard.annotate_insn",
	".altinstructions", "__bug_table", "__jump_table", "__ex_table", ".smp_locks", ".static_call_sites", "__versions",
}

// TargetOf returns what an object is made for. Code for a kernel that shows no sign of it counts
// as a program's.
func TargetOf(o *elfreloc.Object) Target {
	if o.OSABI() == elf.ELFOSABI_FREEBSD {
		return FreeBSD
	}
	if HasKernelSections(o) {
		return LinuxKernel
	}
	if callsKernelThunk(o) {
		return LinuxKernel
	}
	return LinuxProgram
}

// callsKernelThunk reports whether code returns through a function that another object defines, as the code of kernels
// does (-mfunction-return=thunk-extern).
func callsKernelThunk(o *elfreloc.Object) bool {
	m := machines.Lookup(o.ABI())
	if m == nil || m.Traits().ReturnThunk.Symbol == "" {
		return false
	}
	thunk := m.Traits().ReturnThunk.Symbol
	if found, err := o.NamesContain([][]byte{[]byte(thunk)}); err != nil || !found {
		return false
	}
	syms, err := o.Symbols()
	for i := 0; err == nil && i < syms.Len(); i++ {
		if sym := syms.At(i); sym.Name == thunk && sym.Section == 0 {
			return true
		}
	}
	return false
}

// HasKernelSections reports whether an object has sections that only objects of Linux kernels have.
func HasKernelSections(o *elfreloc.Object) bool {
	return slices.ContainsFunc(o.Sections, func(s elfreloc.Section) bool {
		return slices.ContainsFunc(kernelSections, func(name string) bool {
			beginning, cut := strings.CutSuffix(name, "-")
			return s.Name == name || cut && strings.HasPrefix(s.Name, beginning)
		})
	})
}
