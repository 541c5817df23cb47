package main

import (
	"slices"

	"sdtconvert/linkerset"
)

// The flags that several commands have, and those of convert.
var (
	outputOption = &option{name: "output", letter: "o", value: "OUT", complete: completeFile,
		help: "write the one FILE's result to OUT instead"}
	outputDirOption = &option{name: "output-dir", value: "DIR", complete: completeDirectory,
		help: "write every result to DIR, under the file's name"}
	dryRunOption = &option{name: "dry-run", letter: "n",
		help: "say what would be done, and write nothing"}
	verboseOption = &option{name: "verbose", letter: "v",
		help: "print a line for each site"}
	jsonOption = &option{name: "json",
		help: "print a manifest of all sites in JSON"}
	jobsOption = &option{name: "jobs", letter: "j", value: "N",
		help: "work on N files at once (default: one a processor)"}
	followOption = &option{name: "follow-thin",
		help: "open files that a thin archive names outside of its directory"}
)

// What is converted.
var (
	prefixOption = &option{name: "prefix", value: "PREFIX",
		help: "stubs of probe calls begin with PREFIX, instead of __dtrace_probe_; may be repeated"}
	enabledPrefixOption = &option{name: "enabled-prefix", value: "PREFIX",
		help: "stubs of is-enabled tests begin with PREFIX, instead of __dtrace_isenabled_; may be repeated"}
	symbolOption = &option{name: "symbol", value: "NAME",
		help: "NAME is a stub too, of probe NAME; may be repeated"}
	returnThunkOption = &option{name: "return-thunk", value: "SYMBOL", optional: true,
		help: "jump to SYMBOL (default: gcc's name for the machine's thunk) instead of returning; implied if an object refers to that"}
)

// What is recorded.
var (
	layoutOption = &option{name: "layout", value: "LAYOUT",
		help:    "pairs, relative or freebsd, for a reader of records: without notes; by default freebsd for objects of FreeBSD, and pairs for others",
		choices: choicesOf(linkerset.Formats())}
	sectionOption = &option{name: "section", value: "NAME",
		help: "name of the section of records"}
	probePrefixOption = &option{name: "probe-object-prefix", value: "PREFIX",
		help: "probe objects are named PREFIX<id>, instead of sdt_<id>"}
	noRecordsOption = &option{name: "no-records",
		help: "only disable the sites"}
	dropRelocationsOption = &option{name: "drop-relocations",
		help: "delete the relocations of disabled sites, instead of letting them keep the records alive"}
	stapsdtOption = &option{name: "stapsdt",
		help: "add notes too, by which gdb, perf, bpftrace, bcc and SystemTap find the probes; the default for programs of Linux, without --layout and --section"}
	noStapsdtOption = &option{name: "no-stapsdt",
		help: "add no notes"}
	functionsOption = &option{name: "functions",
		help: "add the name of each site's function, which outlives strip; the default for programs of Linux, without --layout and --section"}
	noFunctionsOption = &option{name: "no-functions",
		help: "add no names of functions"}
	semaphoresOption = &option{name: "semaphores", value: "WHICH",
		help:    "with --stapsdt, which probes get a semaphore that tracers raise: tested (default), those that the object has is-enabled tests of, or all",
		choices: []string{testedSemaphores, allSemaphores}}
	dtraceOption = &option{name: "dtrace",
		help: "add notes too, by which DTrace for Linux finds the sites of probes that dtrace -G has declared"}
)

// convertedOptions are the flags that say what is converted.
var convertedOptions = []*option{prefixOption, enabledPrefixOption, symbolOption, returnThunkOption}

// recordedOptions are the flags that say what is recorded.
var recordedOptions = []*option{
	layoutOption, sectionOption, probePrefixOption, noRecordsOption, dropRelocationsOption,
	stapsdtOption, noStapsdtOption, functionsOption, noFunctionsOption, semaphoresOption, dtraceOption,
}

// conversionOptions are the flags of conversion that linkers and compilers are run with.
var conversionOptions = slices.Concat(convertedOptions, recordedOptions, []*option{followOption})
