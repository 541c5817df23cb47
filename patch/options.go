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

// Options say how sites are disabled and recorded. The zero Options are the defaults of the command: they choose
// layout and notes by what each object is made for. Options are not modified, so that several goroutines may use the
// same.
type Options struct {
	Names Names
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
	// object does not define; nil for nothing.
	ProbeSource ProbeSource
	// LinkConverts says that the link converts the code that it generates, so that no warning
	// is due about intermediate code.
	LinkConverts bool
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
	// AutoFunctions are tables for objects that have notes WithNotes.
	AutoFunctions Functions = iota
	WithFunctions
	WithoutFunctions
)

// defaultProbePrefix begins the names of FreeBSD's probe objects.
const defaultProbePrefix = "sdt_"

// Complete returns opts with a default in the place of what is missing. What it still leaves to the target of each
// object is decided by NewScan.
func (opts Options) Complete() Options {
	opts.Names = opts.Names.orDefault()
	opts.ProbePrefix = cmp.Or(opts.ProbePrefix, defaultProbePrefix)
	opts.FixedLayout = opts.FixedLayout || opts.Layout != (linkerset.Layout{})
	if opts.Notes == AutoNotes && (opts.FixedLayout || opts.NoRecords || opts.DTraceForms) {
		opts.Notes = WithoutNotes
	}
	if opts.Names.Guards = ""; opts.Notes != WithoutNotes {
		opts.Names.Guards = GuardPrefix
	}
	if opts.DTraceForms || opts.Functions == AutoFunctions && opts.Notes == WithoutNotes {
		opts.Functions = WithoutFunctions
	}
	return opts
}

// hasNotes reports whether there are notes of any kind.
func (opts Options) hasNotes() bool { return opts.Notes == WithNotes || opts.DTrace }

// MayHaveNotes reports whether some object gets notes of any kind.
func (opts Options) MayHaveNotes() bool { return opts.DTrace || opts.Complete().Notes != WithoutNotes }

// armable reports whether the sites are armed with breakpoints: by uprobes, which find
// them through notes, or by FreeBSD's kernel. Its handler of breakpoints steps over one byte, and its function
// boundary tracing owns each return. So the first byte of a site has to be a NOP of one byte.
func (opts Options) armable() bool {
	return opts.hasNotes() || opts.Layout.Format == linkerset.FreeBSD
}

// Target is what a relocatable object is made for, as far as the usual reader of its probes
// depends on it.
type Target uint8

const (
	// LinuxProgram is an object for programs and libraries, whose probes the tracers of Linux find
	// by notes. Objects of systems that have no OSABI of their own count as this, too.
	LinuxProgram Target = iota
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

// ForTarget returns the options for an object of a target, completed. They leave nothing to choose.
func (opts Options) ForTarget(t Target) Options {
	opts = opts.Complete()
	if !opts.FixedLayout && t == FreeBSD {
		opts.Layout.Format = linkerset.FreeBSD
	}
	if opts.Notes == AutoNotes {
		if opts.Notes = WithNotes; t != LinuxProgram {
			opts.Notes = WithoutNotes
		}
	}
	if opts.FixedLayout = true; opts.Functions == AutoFunctions && opts.Notes == WithNotes {
		opts.Functions = WithFunctions
	}
	return opts.Complete()
}

// forObject returns the options for an object: those for its target.
func (opts Options) forObject(o *elfreloc.Object) Options {
	if opts = opts.Complete(); opts.FixedLayout && opts.Notes != AutoNotes && opts.Functions != AutoFunctions {
		return opts
	}
	return opts.ForTarget(TargetOf(o))
}
