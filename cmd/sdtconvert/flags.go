package main

import (
	"cmp"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/pflag"

	"sdtconvert/internal/check/report"
	"sdtconvert/internal/convert"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/locate"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// flags are the values of a command's flags, and the defaults of those that it does not have.
type flags struct {
	*pflag.FlagSet
	wraps bool     // what follows the flags is for a program that is run
	files []string // what does not belong to flags

	patch             patch.Options
	jobs              int
	json              bool
	output, outputDir string
	dryRun, verbose   bool
	follow            bool // files outside of the directory of a thin archive
	layout, section   string
	semaphores        string
	returnThunk       string
	stapsdt           bool
	noStapsdt         bool
	asm               bool // of stubs and sites

	linker                        string // this and the next of ld
	inPlace, noStubs, noUndefined bool

	require, allowed []string // this and the next of check
	requireNotes     bool
	format           string

	pid    int // this and the next of list and resolve
	system bool
	names  bool
	probes listing.Pattern
	shown  locate.Options
}

// newFlags defines the flags of a command for one run, in a set that prints nothing.
func newFlags(c *command, set *pflag.FlagSet) *flags {
	f := &flags{
		FlagSet: set, wraps: c.wrapped != "", jobs: runtime.GOMAXPROCS(0),
		layout: linkerset.Pairs.String(), semaphores: patch.Tested.String(), format: report.Default,
	}
	f.patch.Names, f.patch.ProbePrefix = patch.DefaultNames(), "sdt_"
	f.SortFlags = false
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	f.SetInterspersed(!f.wraps)
	declared := c.flags()
	for _, v := range []struct { // in the order of completions
		name string
		p    any
	}{
		{"jobs", &f.jobs}, {"demangle", &f.shown.Demangle}, {"inlines", &f.shown.Inlines},
		{"prefix", &f.patch.Names.Prefixes}, {"enabled-prefix", &f.patch.Names.EnabledPrefixes}, {"symbol", &f.patch.Names.Symbols},
		{"section", &f.section}, {"probe-object-prefix", &f.patch.ProbePrefix}, {"follow-thin", &f.follow},
		{"return-thunk", &f.returnThunk}, {"layout", &f.layout}, {"json", &f.json},
		{"output", &f.output}, {"output-dir", &f.outputDir}, {"asm", &f.asm}, {"dry-run", &f.dryRun}, {"verbose", &f.verbose},
		{"no-records", &f.patch.NoRecords}, {"drop-relocations", &f.patch.DropRelocations},
		{"stapsdt", &f.stapsdt}, {"no-stapsdt", &f.noStapsdt}, {"dtrace", &f.patch.DTrace},
		{"semaphores", &f.semaphores},
		{"linker", &f.linker}, {"in-place", &f.inPlace}, {"no-stubs", &f.noStubs}, {"no-undefined-probes", &f.noUndefined},
		{"require", &f.require}, {"require-notes", &f.requireNotes}, {"allow", &f.allowed}, {"format", &f.format},
		{"pid", &f.pid}, {"system", &f.system}, {"names", &f.names},
		{"provider", &f.probes.Provider}, {"module", &f.probes.Module}, {"function", &f.probes.Function}, {"name", &f.probes.Name},
	} {
		if i := slices.IndexFunc(declared, func(o *option) bool { return o.name == v.name }); i >= 0 {
			declared[i].define(set, v.p)
		}
	}
	return f
}

// ownThunk is the value of --return-thunk without one. No symbol has this name.
const ownThunk = "*"

// checkStubNames checks the names of stubs.
func (f *flags) checkStubNames() error {
	if n := &f.patch.Names; slices.Contains(slices.Concat(n.Prefixes, n.EnabledPrefixes, n.Symbols), "") {
		return usagef("an empty prefix or symbol would match every name")
	}
	return nil
}

// checkNames checks what names stubs, probe objects and the output, and that there are files.
func (f *flags) checkNames() error {
	if err := f.checkStubNames(); err != nil {
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

// parseLayout reads the layout of records. Without a flag for it, the target of each object chooses.
func (f *flags) parseLayout() (err error) {
	f.patch.FixedLayout = f.Changed("layout") || f.Changed("section")
	if f.patch.Layout, err = linkerset.ParseLayout(f.layout, f.section); err != nil {
		return usageError{err}
	}
	return nil
}

// validate checks a command line that was parsed, and completes what it says.
func (f *flags) validate() error {
	f.files = f.Args()
	if err := cmp.Or(f.parseLayout(), f.checkNames()); err != nil {
		return err
	}
	switch { // --stapsdt=false is --no-stapsdt
	case f.stapsdt:
		f.patch.Notes = patch.WithNotes
	case f.noStapsdt || f.Changed("stapsdt"):
		f.patch.Notes = patch.WithoutNotes
	}
	f.patch = f.patch.Complete()
	switch {
	case f.jobs < 1:
		return usagef("--jobs %d is less than 1", f.jobs)
	case f.Changed("output-dir") && f.outputDir == "":
		return usagef("the output directory has no name")
	case f.output != "" && f.outputDir != "":
		return usagef("-o and --output-dir exclude each other")
	case f.output != "" && len(f.files) > 1:
		return usagef("-o takes one file, and %d are given; use --output-dir", len(f.files))
	case f.Changed("semaphores") && f.patch.Notes == patch.WithoutNotes:
		return usagef("--semaphores is of no use without --stapsdt")
	case f.noStapsdt && f.stapsdt:
		return usagef("--stapsdt and --no-stapsdt exclude each other")
	case f.json && f.verbose:
		return usagef("--json and -v exclude each other")
	}
	return f.chooseSemaphores()
}

// chooseSemaphores says which semaphores there are, where there are notes.
func (f *flags) chooseSemaphores() (err error) {
	if f.patch.Notes == patch.WithoutNotes {
		return nil
	}
	if f.patch.Semaphores, err = patch.ParseSemaphores(cmp.Or(f.semaphores, patch.Tested.String())); err != nil {
		return usageError{err}
	}
	return nil
}

// conversion are the options of a conversion of so many files.
func (f *flags) conversion(files int) convert.Options {
	return convert.Options{
		Patch: f.patch, Jobs: f.jobs, Files: files,
		FollowThin: f.follow, DryRun: f.dryRun, Verbose: f.verbose, Manifest: f.json,
	}
}
