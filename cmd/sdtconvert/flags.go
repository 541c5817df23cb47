package main

import (
	"cmp"
	"os"
	"runtime"
	"slices"

	"github.com/spf13/pflag"

	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// settings are what the flags of convert and inspect say.
type settings struct {
	patch     patch.Options
	jobs      int
	json      bool
	output    string
	outputDir string
	dryRun    bool
	verbose   bool
	follow    bool // files outside of the directory of a thin archive
	files     []string
}

// flags collects a command line before it is checked.
type flags struct {
	*pflag.FlagSet
	settings
	layout, section string
	prototypes      string
	semaphores      string
	returnThunk     string
	noStapsdt       bool
	wraps           bool // what follows the flags is for a program that is run
}

// newFlags defines the flags that all commands on objects share.
func newFlags(f *pflag.FlagSet) *flags {
	values := newConversionFlags(f)
	jsonOption.bool(f, &values.json)
	return values
}

// newConversionFlags defines those that say what is converted, and to what.
func newConversionFlags(f *pflag.FlagSet) *flags {
	values := &flags{FlagSet: f}
	jobsOption.int(f, &values.jobs, runtime.GOMAXPROCS(0))
	values.defineNames()
	values.defineReturnThunk()
	layoutOption.string(f, &values.layout, linkerset.Pairs.String())
	return values
}

func (f *flags) defineReturnThunk() {
	returnThunkOption.string(f.FlagSet, &f.returnThunk, "")
	f.Lookup(returnThunkOption.name).NoOptDefVal = ownThunk
}

// ownThunk is the value of --return-thunk without one. No symbol has this name.
const ownThunk = "*"

// defineNames defines the flags that say what stubs, probe objects and records
// are called.
func (f *flags) defineNames() {
	defineStubNames(f.FlagSet, &f.patch.Names)
	sectionOption.string(f.FlagSet, &f.section, "")
	probePrefixOption.string(f.FlagSet, &f.patch.ProbePrefix, defaultProbePrefix)
	followOption.bool(f.FlagSet, &f.follow)
}

// defaultProbePrefix is what the names of probe objects begin with.
const defaultProbePrefix = "sdt_"

// defineStubNames defines the flags that say what stubs are called.
func defineStubNames(f *pflag.FlagSet, n *patch.Names) {
	*n = patch.DefaultNames()
	prefixOption.list(f, &n.Prefixes)
	enabledPrefixOption.list(f, &n.EnabledPrefixes)
	symbolOption.list(f, &n.Symbols)
}

// checkStubNames checks what defineStubNames has defined.
func checkStubNames(n *patch.Names) error {
	for _, s := range slices.Concat(n.Prefixes, n.EnabledPrefixes, n.Symbols) {
		if s == "" {
			return usagef("an empty prefix or symbol would match every name")
		}
	}
	return nil
}

// checkNames checks what defineNames has defined, and that there are files.
func (f *flags) checkNames() error {
	if err := checkStubNames(&f.patch.Names); err != nil {
		return err
	}
	if f.patch.ReturnThunk.Own = f.returnThunk == ownThunk; !f.patch.ReturnThunk.Own {
		f.patch.ReturnThunk.Symbol = f.returnThunk
	}
	switch {
	case len(f.files) == 0 && !f.wraps:
		return usagef("no file is given")
	case f.patch.ProbePrefix == "":
		return usagef("the prefix of probe objects is empty")
	case f.Changed("return-thunk") && f.returnThunk == "":
		return usagef("the return thunk has no name")
	case f.Changed("output") && f.output == "":
		return usagef("the output has no name")
	}
	return checkOutput(f.output)
}

// checkOutput rejects the dash, by which other programs mean standard output.
func checkOutput(path string) error {
	if path == "-" {
		return usagef("-o - names no file; ./- is a file of that name, and /dev/stdout is standard output")
	}
	return nil
}

// convertFlags adds those that only convert has.
func convertFlags(f *pflag.FlagSet) *flags {
	values := newFlags(f)
	outputOption.string(f, &values.output, "")
	outputDirOption.string(f, &values.outputDir, "")
	dryRunOption.bool(f, &values.dryRun)
	verboseOption.bool(f, &values.verbose)
	values.defineRecords()
	return values
}

// defineRecords defines the flags that say what a conversion records.
func (f *flags) defineRecords() {
	noRecordsOption.bool(f.FlagSet, &f.patch.NoRecords)
	dropRelocationsOption.bool(f.FlagSet, &f.patch.DropRelocations)
	stapsdtOption.bool(f.FlagSet, &f.patch.Stapsdt)
	noStapsdtOption.bool(f.FlagSet, &f.noStapsdt)
	dtraceOption.bool(f.FlagSet, &f.patch.DTrace)
	semaphoresOption.string(f.FlagSet, &f.semaphores, patch.Tested.String())
	prototypesOption.string(f.FlagSet, &f.prototypes, "")
}

// validate checks a command line that was parsed, and completes what it says.
func (f *flags) validate() (*settings, error) {
	layout, err := linkerset.ParseLayout(f.layout, f.section)
	if err != nil {
		return nil, usageError{err}
	}
	f.patch.Layout, f.files = layout, f.Args()
	f.chooseByTarget()
	if err := f.checkNames(); err != nil {
		return nil, err
	}
	switch {
	case f.jobs < 1:
		return nil, usagef("--jobs %d is less than 1", f.jobs)
	case f.Changed("output-dir") && f.outputDir == "":
		return nil, usagef("the output directory has no name")
	case f.output != "" && f.outputDir != "":
		return nil, usagef("-o and --output-dir exclude each other")
	case f.output != "" && len(f.files) > 1:
		return nil, usagef("-o takes one file, and %d are given; use --output-dir", len(f.files))
	case f.Changed("prototypes") && !f.patch.MayHaveNotes():
		return nil, usagef("--prototypes is of no use without --stapsdt or --dtrace")
	case f.Changed("semaphores") && !f.patch.Stapsdt && !f.patch.AutoStapsdt:
		return nil, usagef("--semaphores is of no use without --stapsdt")
	case f.noStapsdt && f.patch.Stapsdt:
		return nil, usagef("--stapsdt and --no-stapsdt exclude each other")
	case f.json && f.verbose:
		return nil, usagef("--json and -v exclude each other")
	}
	if err := f.chooseSemaphores(); err != nil {
		return nil, err
	}
	return &f.settings, f.readPrototypes()
}

// chooseByTarget leaves to the target of each object what no flag says. A layout or a name of
// sections is for a reader of records, who needs no notes.
func (f *flags) chooseByTarget() {
	f.patch.AutoLayout = !f.Changed("layout") && !f.Changed("section")
	f.patch.AutoStapsdt = f.patch.AutoLayout && !f.Changed("stapsdt") && !f.noStapsdt && !f.patch.NoRecords
}

// chooseSemaphores says which semaphores there are, where there are notes.
func (f *flags) chooseSemaphores() (err error) {
	if !f.patch.Stapsdt && !f.patch.AutoStapsdt {
		return nil
	}
	f.patch.Names.Guards = patch.GuardPrefix
	if f.patch.Semaphores, err = patch.ParseSemaphores(cmp.Or(f.semaphores, patch.Tested.String())); err != nil {
		return usageError{err}
	}
	return nil
}

// readPrototypes reads the file that --prototypes names.
func (f *flags) readPrototypes() error {
	if !f.Changed("prototypes") {
		return nil
	}
	file, err := os.Open(f.prototypes)
	if err != nil {
		return err
	}
	defer file.Close()
	f.patch.Prototypes, err = patch.ReadPrototypes(file, f.prototypes)
	return err
}
