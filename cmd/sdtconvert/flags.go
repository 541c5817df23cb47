package main

import (
	"errors"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"sdtconvert/arch"
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
	follow    bool // files outside of the folder of a thin archive
	files     []string
}

// flags collects a command line before it is checked.
type flags struct {
	*pflag.FlagSet
	settings
	layout, section string
	prototypes      string
	semaphores      string
	forLinker       bool // what follows the flags is for a linker
}

// newFlagSet makes an empty set that prints nothing itself.
func newFlagSet(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetOutput(io.Discard) // errors and help are the caller's to print
	f.Usage = func() {}
	return f
}

// parseFlags tells a fault of the command line from a wish for help.
func parseFlags(f *pflag.FlagSet, args []string) error {
	err := f.Parse(args)
	if err != nil && !errors.Is(err, pflag.ErrHelp) {
		return usageError{err}
	}
	return err
}

// newFlags defines the flags that all commands on objects share.
func newFlags(name string) *flags {
	f := newConversionFlags(name)
	f.BoolVar(&f.json, "json", false, "")
	return f
}

// newConversionFlags defines those that say what is converted, and to what.
func newConversionFlags(name string) *flags {
	f := &flags{FlagSet: newFlagSet(name)}
	f.IntVarP(&f.jobs, "jobs", "j", runtime.GOMAXPROCS(0), "")
	f.defineNames()
	f.defineReturnThunk()
	f.StringVar(&f.layout, "layout", linkerset.Pairs.String(), "")
	return f
}

func (f *flags) defineReturnThunk() {
	f.StringVar(&f.patch.ReturnThunk, "return-thunk", "", "")
	f.Lookup("return-thunk").NoOptDefVal = arch.OwnThunk
}

// defineNames defines the flags that say what stubs, probe objects and records
// are called.
func (f *flags) defineNames() {
	defineStubNames(f.FlagSet, &f.patch.Names)
	f.StringVar(&f.section, "section", "", "")
	f.StringVar(&f.patch.ProbePrefix, "probe-object-prefix", "sdt_", "")
	defineFollow(f.FlagSet, &f.follow)
}

// defineStubNames defines the flags that say what stubs are called.
func defineStubNames(f *pflag.FlagSet, n *patch.Names) {
	*n = patch.DefaultNames()
	f.Var(&repeated{to: &n.Prefixes}, "prefix", "")
	f.Var(&repeated{to: &n.EnabledPrefixes}, "enabled-prefix", "")
	f.Var(&repeated{to: &n.Symbols}, "symbol", "")
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

// defineFollow defines the flag for thin archives.
func defineFollow(f *pflag.FlagSet, follow *bool) { f.BoolVar(follow, "follow-thin", false, "") }

// checkNames checks what defineNames has defined, and that there are files.
func (f *flags) checkNames() error {
	if err := checkStubNames(&f.patch.Names); err != nil {
		return err
	}
	switch {
	case len(f.files) == 0 && !f.forLinker:
		return usagef("no file is given")
	case f.patch.ProbePrefix == "":
		return usagef("the prefix of probe objects is empty")
	case f.Changed("return-thunk") && f.patch.ReturnThunk == "":
		return usagef("the return thunk has no name")
	case f.Changed("output") && f.output == "":
		return usagef("the output has no name")
	}
	return nil
}

// repeated is the value of a flag that may be repeated. Its first use replaces the
// default. pflag's own writes the default as CSV, which nobody reads here, and
// takes a tenth of what the work on a small object takes.
type repeated struct {
	to  *[]string
	set bool
}

func (l *repeated) Set(s string) error {
	if !l.set {
		*l.to, l.set = nil, true
	}
	*l.to = append(*l.to, s)
	return nil
}

func (l *repeated) String() string { return strings.Join(*l.to, " ") }
func (l *repeated) Type() string   { return "strings" }

// convertFlags adds those that only convert has.
func convertFlags() *flags {
	f := newFlags("convert")
	f.StringVarP(&f.output, "output", "o", "", "")
	f.StringVar(&f.outputDir, "output-dir", "", "")
	f.BoolVarP(&f.dryRun, "dry-run", "n", false, "")
	f.defineRecords()
	return f
}

// defineRecords defines the flags that say what a conversion tells and records.
func (f *flags) defineRecords() {
	f.BoolVarP(&f.verbose, "verbose", "v", false, "")
	f.BoolVar(&f.patch.NoRecords, "no-records", false, "")
	f.BoolVar(&f.patch.DropRelocations, "drop-relocations", false, "")
	f.BoolVar(&f.patch.Stapsdt, "stapsdt", false, "")
	f.BoolVar(&f.patch.DTrace, "dtrace", false, "")
	f.StringVar(&f.semaphores, "semaphores", patch.Tested.String(), "")
	f.StringVar(&f.prototypes, "prototypes", "", "")
}

// parse checks a command line.
func (f *flags) parse(args []string) (*settings, error) {
	if err := parseFlags(f.FlagSet, args); err != nil {
		return nil, err
	}
	layout, err := linkerset.ParseLayout(f.layout, f.section)
	if err != nil {
		return nil, usageError{err}
	}
	f.patch.Layout, f.files = layout, f.Args()
	if err := f.checkNames(); err != nil {
		return nil, err
	}
	switch {
	case f.jobs < 1:
		return nil, usagef("--jobs %d is less than 1", f.jobs)
	case f.Changed("output-dir") && f.outputDir == "":
		return nil, usagef("the output folder has no name")
	case f.output != "" && f.outputDir != "":
		return nil, usagef("-o and --output-dir exclude each other")
	case f.output != "" && len(f.files) > 1:
		return nil, usagef("-o takes one file, and %d are given; use --output-dir", len(f.files))
	case f.Changed("prototypes") && !f.patch.Noted():
		return nil, usagef("--prototypes is of no use without --stapsdt or --dtrace")
	case f.Changed("semaphores") && !f.patch.Stapsdt:
		return nil, usagef("--semaphores is of no use without --stapsdt")
	case f.json && f.verbose:
		return nil, usagef("--json and -v exclude each other")
	}
	if err := f.chooseSemaphores(); err != nil {
		return nil, err
	}
	return &f.settings, f.readPrototypes()
}

// chooseSemaphores says which semaphores there are, where there are notes.
func (f *flags) chooseSemaphores() (err error) {
	if !f.patch.Stapsdt {
		return nil
	}
	f.patch.Names.Guards = patch.GuardPrefix
	if f.patch.Semaphores, err = patch.ParseSemaphores(f.semaphores); err != nil {
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
