package main

import (
	"slices"

	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// thunksMark stands in a text for the manual where the return thunks of all machines are
// listed.
const thunksMark = "RETURN-THUNKS"

// The flags that several commands have, and those of convert.
var (
	outputOption = &option{name: "output", letter: "o", value: "OUT", complete: completeFile,
		help: "write the one FILE's result to OUT instead",
		manual: `Write the result to {out} and leave {file} as it is.
The output is made even if there is nothing to convert.`}
	outputDirOption = &option{name: "output-dir", value: "DIR", complete: completeDirectory,
		help: "write every result to DIR, under the file's name",
		manual: `Write each result to {dir}, which is created if necessary, under the name of its
file.`}
	dryRunOption = &option{name: "dry-run", letter: "n",
		help:   "say what would be done, and write nothing",
		manual: `Say what would be done, and write nothing.`}
	verboseOption = &option{name: "verbose", letter: "v",
		help: "print a line for each site",
		manual: `Print a line for each site, and each warning for each file: without -v, a warning
about several files is one line.`}
	jsonOption = &option{name: "json",
		help: "print a manifest of all sites in JSON",
		manual: `Print a manifest of all sites in JSON, including those that were converted earlier
and those of provider files, which need no conversion.`}
	jobsOption = &option{name: "jobs", letter: "j", value: "N",
		help: "work on N files at once (default: one a processor)",
		manual: `Work on {n} files at once.
The default is the number of processors.`}
	followOption = &option{name: "follow-thin",
		help: "open files that a thin archive names outside of its directory",
		manual: `Open the files that a thin archive names even if they are not in the directory of
the archive or below it.
Otherwise they are refused, so that an archive from elsewhere cannot have any
file read or converted.
A symbolic link counts as its target.`}
)

// What is converted.
var (
	prefixOption = &option{name: "prefix", value: "PREFIX",
		help: "stubs of probe calls begin with PREFIX, instead of __dtrace_probe_; may be repeated",
		manual: "The stubs of probe calls begin with {prefix} instead of `__dtrace_probe_`, and the\n" +
			`probe's id follows it.
May be repeated.`}
	enabledPrefixOption = &option{name: "enabled-prefix", value: "PREFIX",
		help: "stubs of is-enabled tests begin with PREFIX, instead of __dtrace_isenabled_; may be repeated",
		manual: "The stubs of is-enabled tests begin with {prefix} instead of `__dtrace_isenabled_`.\n" +
			`May be repeated.
The longest prefix that a name begins with decides.`}
	symbolOption = &option{name: "symbol", value: "NAME",
		help: "NAME is a stub too, of probe NAME; may be repeated",
		manual: `The function {name} is a stub too, and its probe's id is {name}.
May be repeated.`}
	returnThunkOption = &option{name: "return-thunk", value: "SYMBOL", optional: true,
		help: "jump to SYMBOL (default: gcc's name for the machine's thunk) instead of returning; implied if an object refers to that",
		manual: "Jump to {symbol} instead of returning, as code does that was compiled with\n" +
			"`-mfunction-return=thunk-extern`.\n" +
			"The default {symbol} is what gcc calls it for the machine:\n" + thunksMark + ".\n" +
			`The flag is implied for objects that refer to that symbol.`}
)

// What is recorded.
var (
	layoutOption = &option{name: "layout", value: "LAYOUT",
		help: "pairs, relative or freebsd, for a reader of records: without notes; by default freebsd for objects of FreeBSD, and pairs for others",
		manual: `The format of a record, for a reader of records: without --stapsdt there are no notes
then.
Objects of FreeBSD have *freebsd* by default, and others *pairs*:`,
		choices: choicesOf(linkerset.Formats(),
			"Two absolute words, the address of the probe object `sdt_<id>` and that of the\n"+
				"site, in the sections `sdt_instances_set` and, for is-enabled tests,\n"+
				"`sdt_isenabled_set`.\nThis is the default, but for objects of FreeBSD.",
			"Two 32-bit distances, each from its own field, in the read-only sections\n"+
				"`sdt_instances_rel` and `sdt_isenabled_rel`.\n"+
				`They need no dynamic relocations in position-independent code.
The probe object must be in the same program or library.`,
			"Pointers, in the sections `set_sdt_instances_set` and `set_sdt_isenabled_set`, to\n"+
				"pairs as above in the section `sdt_instances`, as `sys/linker_set.h` of FreeBSD\nexpects them.\n"+
				`On amd64 and i386, calls and tail calls of probes get the forms of --stapsdt,
which its kernel can arm.`)}
	sectionOption = &option{name: "section", value: "NAME",
		help:   "name of the section of records",
		manual: `Derive the names of these sections from {name}, which must be a C identifier.`}
	probePrefixOption = &option{name: "probe-object-prefix", value: "PREFIX",
		help:   "probe objects are named PREFIX<id>, instead of sdt_<id>",
		manual: "Probe objects are named {prefix} and the probe's id, instead of `sdt_` and the id."}
	noRecordsOption = &option{name: "no-records",
		help:   "only disable the sites",
		manual: `Only disable the sites.`}
	dropRelocationsOption = &option{name: "drop-relocations",
		help: "delete the relocations of disabled sites, instead of letting them keep the records alive",
		manual: `Delete the relocations of disabled sites.
Otherwise they stay, with a type that does nothing, and keep the records alive
for as long as the linker keeps the code: without them, a link must neither collect
garbage nor fold functions (--gc-sections, --icf).
Loadable modules of Linux on i386, powerpc and riscv need this flag.`}
	stapsdtOption = &option{name: "stapsdt",
		help: "add notes too, by which gdb, perf, bpftrace, bcc and SystemTap find the probes; the default for programs of Linux, without --layout and --section",
		manual: `Add a note for each probe call, by which gdb, perf, bpftrace, bcc and SystemTap find
the probes of programs and shared libraries.
On amd64 the site of a call then begins with a one-byte NOP, which kernels arm
best.
This is the default for objects of Linux, unless --layout or --section says that a reader of
records takes them, --no-records is given, or the object is one of a Linux kernel: it has
sections that only kernels have, or returns through a thunk of another object.`}
	noStapsdtOption = &option{name: "no-stapsdt",
		help:   "add no notes",
		manual: `Add no notes.`}
	semaphoresOption = &option{name: "semaphores", value: "WHICH",
		help: "with --stapsdt, which probes get a semaphore that tracers raise: tested (default), those that the object has is-enabled tests of, or all",
		manual: `With --stapsdt, which probes of an object get a semaphore, which tracers raise for as
long as they trace the probe: *tested*, those that the object has is-enabled tests
of, which is the default, or *all* that it has sites of.
The tests load it, and are true while it is raised.
If an object was converted without *all*, converting it with *all* is refused.`,
		choices: choicesOf([]patch.Semaphores{patch.Tested, patch.All})}
	dtraceOption = &option{name: "dtrace",
		help: "add notes too, by which DTrace for Linux finds the sites of probes that dtrace -G has declared",
		manual: "Add a note for each probe call, by which DTrace for Linux finds the sites of probes\n" +
			"that an object of `dtrace -G` has declared.\n" +
			`Sites are as with --stapsdt, which may be given as well.
If an argument of a probe is unknown, or is where DTrace cannot read it, the
probe has no such note, and a warning says so.`}
)

// convertedOptions are the flags that say what is converted.
var convertedOptions = []*option{prefixOption, enabledPrefixOption, symbolOption, returnThunkOption}

// recordedOptions are the flags that say what is recorded.
var recordedOptions = []*option{
	layoutOption, sectionOption, probePrefixOption, noRecordsOption, dropRelocationsOption,
	stapsdtOption, noStapsdtOption, semaphoresOption, dtraceOption,
}

// conversionOptions are the flags of conversion that linkers and compilers are run with.
var conversionOptions = slices.Concat(convertedOptions, recordedOptions, []*option{followOption})
