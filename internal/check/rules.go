package check

// Severity says whether a finding is a fault.
type Severity string

const (
	Error Severity = "error"
	Note  Severity = "note" // worth knowing, and as it should be
)

// Rule is one kind of finding. Its name is stable: command lines have it.
type Rule struct {
	Name     string
	Severity Severity
	Summary  string // one line
	Cause    string
	Cure     string
}

// The rules.
var (
	NotConverted = &Rule{"not-converted", Error, "an image, a part of it, or a NOP of an object was not converted",
		"The link went past sdtconvert, and so did its objects: nothing records the tracepoints.",
		"Link with -B and the directory of sdtconvert's ld, or convert the objects before they are linked."}
	LiveCall = &Rule{"live-call", Error, "a stub is still called",
		"An object was not converted, or a converted site was written over.",
		"Convert every object before it is linked."}
	StubAddress = &Rule{"stub-address", Error, "a stub's address is taken, or it is called through a register",
		"A pointer to the stub is stored or loaded: by the source, or by the compiler with -fno-plt or -mcmodel=large.",
		"Call the stub directly, and compile without these flags."}
	RefusedCall = &Rule{"refused-call", Error, "a stub is called in a way that has no disabled form",
		"The compiler or an assembler file made an instruction that cannot be overwritten.",
		"Compile as the message says."}
	LTOObject = &Rule{"lto-object", Error, "an object for link-time optimisation holds probes",
		"The code is still to be generated, calls of stubs and all, after the conversion.",
		"Compile what has probes with -fno-lto, or convert what code generation yields."}
	UnanchoredSite = &Rule{"unanchored-site", Error, "no function holds a site",
		"The code around the site has no symbol of a function and no unwind table, and the image has no name for it.",
		"Give assembler functions .type and .size; do not strip an image without unwind tables."}
	DanglingRecord = &Rule{"dangling-record", Error, "a record leads nowhere",
		"A tool has dropped the code or the relocations of a record, or has written over it.",
		"Let only linkers drop sections, and do not change records."}
	DuplicateRecord = &Rule{"duplicate-record", Error, "a site has two records",
		"Records were linked twice, or code was folded together that differs in its probes.",
		"Link each object, and what sites --asm writes, once; link converted objects and no sites --asm of them."}
	WrongFunction = &Rule{"wrong-function", Error, "the recorded function of a site is not the one of its symbol",
		"Something has changed the symbols, moved the code or written over the table after the conversion.",
		"Link the objects as they were converted."}
	BrokenFunctions = &Rule{"broken-functions", Error, "a table of functions cannot be read",
		"A tool or a linker script has cut the section .sdt_functions, or has written over it; or a later sdtconvert made it.",
		"Link .sdt_functions as it was made, as one piece."}
	UnknownSite = &Rule{"unknown-site", Error, "the bytes of a site are not a disabled form",
		"Something has changed the code after the conversion, or the record is of other code.",
		"Convert last, and link the objects as they were converted."}
	UndefinedProbe = &Rule{"undefined-probe", Error, "a probe has no definition",
		"No object and no library of the link defines the probe object that a record names.",
		"Define the probe (SDT_PROBE_DEFINE), or link what sdtconvert stubs writes."}
	UnresolvedProbe = &Rule{"unresolved-probe", Error, "an image leaves a probe to the loader, and no file that was given exports it",
		"Converted objects were linked without the linker wrapper, and nothing defines the probe; or the program or library that does was not given.",
		"Link with -B, or add what sdtconvert stubs writes. If another program or library exports the probe, give it too."}
	UnusedProbe = &Rule{"unused-probe", Error, "a probe is defined and has no site",
		"No tracepoint of the probe is left, or its objects were not given.",
		"Remove the definition, or find out where the tracepoints went."}
	LeftoverProbe = &Rule{"leftover-probe", Note, "a generated probe definition has no site left",
		"The linker has dropped the code of the sites, and not what stubs, ld or a macro has defined for them.",
		"Nothing is wrong, if the linker was to drop the code."}
	DuplicateProbe = &Rule{"duplicate-probe", Error, "a probe is defined twice",
		"Two sources define one probe, or stubs was not given an object that defines it.",
		"Define each probe once; give all objects of the link to stubs."}
	ArgumentMismatch = &Rule{"argument-mismatch", Error, "calls and definition differ in the number of arguments",
		"The tracepoint has more or fewer arguments than the definition has types, or than another tracepoint has.",
		"Use the macro with the number of the definition, everywhere."}
	MixedLayout = &Rule{"mixed-layout", Error, "records of several layouts are in one link",
		"Objects were converted with different --layout or --section.",
		"Convert all objects with the same flags."}
	MixedFlags = &Rule{"mixed-flags", Error, "objects of one link were converted differently",
		"Objects were converted with different flags, or a tool has changed the flags of sections of records. mold and gold then lose records.",
		"Convert all objects with the same flags, and leave the sections as they are."}
	// MissingBounds is a rule for kernels and modules of FreeBSD, whose linker looks for the
	// bounds of a linker set among the symbols.
	MissingBounds = &Rule{"missing-bounds", Error, "a FreeBSD kernel cannot find the records",
		"Linkers define __start_<section> and __stop_<section> only if something refers to them, and nothing in a kernel or a module does.",
		"Link with sdtconvert ld --layout freebsd, or with -u for each of the two symbols."}
	// KernelTracepoint is a rule for objects and modules of FreeBSD that were compiled with the
	// kernel's own sys/sdt.h. Its tracepoints call no stub, so no conversion meets them.
	KernelTracepoint = &Rule{"kernel-tracepoint", Error, "a FreeBSD object has the tracepoints of the kernel's header",
		"The compiler has found the kernel's sys/sdt.h first. Its tracepoints call no stubs, so they have no records.",
		"Put the -I of sdtconvert's header into CC, so that the compiler searches that directory first for every file."}
	MixedNotes = &Rule{"mixed-notes", Error, "an image has records without notes, beside one with notes",
		"Objects of the images were converted with different flags, or by builds with different SDTCONVERT_FLAGS.",
		"Convert the objects of all images with the same flags."}
	KernelNotes = &Rule{"kernel-notes", Error, "an object for a Linux kernel has notes",
		"Notes and semaphores are for tracers of user space. Its guards read semaphores that no kernel raises.",
		"Convert with --layout pairs."}
	BrokenNote = &Rule{"broken-note", Error, "a note of a probe cannot be read",
		"A tool has cut .note.stapsdt off, or has written over it; or the linker has collected .stapsdt.base. Tracers stop there, or find no probe in the file.",
		"Link the notes as they were made, and with -Wl,-u,_.stapsdt.base where the linker collects garbage (--gc-sections)."}
	StrayNote = &Rule{"stray-note", Note, "a note names an address that is not code",
		"A tool has written over the note or moved the code. Tracers list a probe that is never reached.",
		"Link the notes as they were made, and move code with prelink alone."}
	UnreadArgument = &Rule{"unread-argument", Note, "a tracer does not read an argument of a note",
		"The argument is a structure, a floating-point number or a 128-bit integer, or the compiler has named its register or address in a way that the tracer does not know: with a symbol, or with an index.",
		"Use sdt.h, or the header of provider -h, of this version."}
	MissingNote = &Rule{"missing-note", Error, "a recorded site lacks a required note",
		"An object was converted without --stapsdt, or a tool has dropped notes.",
		"Link again with notes (--stapsdt beside a --layout), or, if objects are converted, compile again; keep the section .note.stapsdt."}
	NoteName = &Rule{"note-name", Error, "the note of a site has another name than its probe",
		"The object was converted without the one that defines the probe, whose id alone does not tell the name.",
		"Link with -B, or convert the objects together."}
	SemaphoreMismatch = &Rule{"semaphore-mismatch", Error, "notes of one probe name different semaphores",
		"Sources define a semaphore of the probe each for itself, or records of several conversions are in one link.",
		"Define one semaphore, which all sources of the image see; convert all objects with the same version and flags."}
	DeadGuard = &Rule{"dead-guard", Error, "a guard tests a semaphore that no tracer increments",
		"The object of the guard was linked as it was compiled, or was converted without --stapsdt; or no tracepoint has the name of its probe.",
		"Convert every object with notes (--stapsdt beside a --layout) before it is linked, those too that only test probes; give guard and tracepoint one name."}
	SemaphorePlace = &Rule{"semaphore-place", Error, "the kernel cannot increment a semaphore where it is",
		"A linker script or the source has put it into memory that is only read, or that is in no file.",
		"Leave semaphores in .probes, and .probes with the other data that programs write."}
	SemaphoreSection = &Rule{"semaphore-section", Note, "a semaphore is not in .probes",
		"The source names another section, or a linker script puts .probes into one. bcc does not raise it.",
		"Leave semaphores in .probes."}
	EarlySemaphore = &Rule{"early-semaphore", Note, "what tracers add before the program starts is lost",
		"The linker maps the page of the file that holds it twice: lld and mold do, where its section is not aligned to a page.",
		"Attach to the running program, or align .probes to 4096 bytes, as conversions do."}
	MissingDOF = &Rule{"missing-dof", Error, "dtrace -G has disabled a site, and nothing tells the kernel of it",
		"dtrace -G was run again for other objects, and its output, which tells the kernel of those alone, took the place of the first.",
		"Run -G once, for all objects of the link."}
	NoProbes = &Rule{"no-probes", Error, "no file has a site of a probe",
		"The files are others than those with the tracepoints, or these were not compiled, or have lost all that tells of them.",
		"Give the files that have the tracepoints, or --allow no-probes."}
	MissingProbe = &Rule{"missing-probe", Error, "a required probe has no site",
		"The tracepoints were removed, were not compiled, or are in a file that was not given; or their records were lost.",
		"Put the tracepoint back, link what was converted, or do not require the probe."}
	UnlistedProbe = &Rule{"unlisted-probe", Error, "a site has a probe that is not listed",
		"The tracepoint is new, or its name is misspelt beside others of the probe that was meant.",
		"Add the probe to the list, or spell it as the list does."}
)

// Rules are all rules, in the order of the manual.
var Rules = []*Rule{
	NotConverted, LiveCall, StubAddress, RefusedCall, LTOObject,
	UnanchoredSite, WrongFunction, BrokenFunctions, UnknownSite, DanglingRecord, DuplicateRecord,
	UndefinedProbe, UnresolvedProbe, UnusedProbe, LeftoverProbe, DuplicateProbe, ArgumentMismatch,
	MixedLayout, MixedFlags, MissingBounds, KernelTracepoint,
	MixedNotes, KernelNotes, BrokenNote, StrayNote, UnreadArgument, MissingNote, NoteName, SemaphoreMismatch, DeadGuard, SemaphorePlace, SemaphoreSection, EarlySemaphore,
	MissingDOF, NoProbes, MissingProbe, UnlistedProbe,
}

// RuleNamed finds a rule, nil for none.
func RuleNamed(name string) *Rule {
	for _, r := range Rules {
		if r.Name == name {
			return r
		}
	}
	return nil
}
