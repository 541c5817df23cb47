package main

import (
	"cmp"
	"io"
	"runtime"
	"slices"

	"github.com/spf13/pflag"

	"sdtconvert/internal/convert"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// invocation is one run of a command, with the values of its flags.
type invocation interface {
	// bindFlags declares the command's flags and gives them their defaults.
	bindFlags(s *flagSet)
	// run runs the command with the arguments that are no flags. failed reports errors that it has printed; err is
	// one that it has not.
	run(p *program, args []string) (failed bool, err error)
}

// flagless is a command without flags, or one that parses them itself.
type flagless func(p *program, args []string) (failed bool, err error)

func (flagless) bindFlags(*flagSet) {}

func (f flagless) run(p *program, args []string) (failed bool, err error) { return f(p, args) }

// flagSet is the flags of one run of a command. It prints nothing.
type flagSet struct {
	*pflag.FlagSet
	command  *command
	declared []*option // of the command
}

// newFlagSet returns the flags of a run of a command.
func newFlagSet(c *command, run invocation) *flagSet {
	s := &flagSet{pflag.NewFlagSet(c.name, pflag.ContinueOnError), c, c.flags()}
	s.SortFlags = false
	s.SetOutput(io.Discard)
	s.Usage = func() {}
	s.SetInterspersed(c.wrapped == "")
	run.bindFlags(s)
	return s
}

// bind has a flag of a name set what p points to, if the command has such a flag.
func (s *flagSet) bind(name string, p any) {
	if i := slices.IndexFunc(s.declared, func(o *option) bool { return o.name == name }); i >= 0 {
		s.declared[i].bindTo(s.FlagSet, p)
	}
}

// conversionFlags are the flags that say what is converted and recorded. Each command has some of them; the others
// have their defaults.
type conversionFlags struct {
	set                     *flagSet
	files                   []string
	patch                   patch.Options
	follow                  bool // files outside of the directory of a thin archive
	layout, section         string
	semaphores, returnThunk string
	stapsdt, noStapsdt      bool
	functions, noFunctions  bool
}

func (f *conversionFlags) bindFlags(s *flagSet) {
	f.set, f.layout, f.semaphores = s, linkerset.Pairs.String(), testedSemaphores
	f.patch.Names, f.patch.ProbePrefix = patch.DefaultNames(), "sdt_"
	s.bind("prefix", &f.patch.Names.Prefixes)
	s.bind("enabled-prefix", &f.patch.Names.EnabledPrefixes)
	s.bind("symbol", &f.patch.Names.Symbols)
	s.bind("section", &f.section)
	s.bind("probe-object-prefix", &f.patch.ProbePrefix)
	s.bind("follow-thin", &f.follow)
	s.bind("return-thunk", &f.returnThunk)
	s.bind("layout", &f.layout)
	s.bind("no-records", &f.patch.NoRecords)
	s.bind("drop-relocations", &f.patch.DropRelocations)
	s.bind("stapsdt", &f.stapsdt)
	s.bind("no-stapsdt", &f.noStapsdt)
	s.bind("functions", &f.functions)
	s.bind("no-functions", &f.noFunctions)
	s.bind("dtrace", &f.patch.DTrace)
	s.bind("semaphores", &f.semaphores)
}

// defaultJobs is how many threads a command has that was not given --jobs.
func defaultJobs() int { return runtime.GOMAXPROCS(0) }

// checkJobs checks the value of --jobs.
func checkJobs(jobs int) error {
	if jobs < 1 {
		return usagef("--jobs %d is less than 1", jobs)
	}
	return nil
}

// ownThunk is the value of --return-thunk without one. No symbol has this name.
const ownThunk = "*"

// checkStubNames checks the names of stubs.
func (f *conversionFlags) checkStubNames() error {
	if n := &f.patch.Names; slices.Contains(slices.Concat(n.Prefixes, n.EnabledPrefixes, n.Symbols), "") {
		return usagef("an empty prefix or symbol would match every name")
	}
	return nil
}

// checkNames checks what names stubs and probe objects, and that there are files.
func (f *conversionFlags) checkNames() error {
	if err := f.checkStubNames(); err != nil {
		return err
	}
	if f.patch.ReturnThunk.Own = f.returnThunk == ownThunk; !f.patch.ReturnThunk.Own {
		f.patch.ReturnThunk.Symbol = f.returnThunk
	}
	switch {
	case len(f.files) == 0 && f.set.command.wrapped == "":
		return usagef("no file is given")
	case f.patch.ProbePrefix == "":
		return usagef("the prefix of probe objects is empty")
	case f.set.Changed("return-thunk") && f.returnThunk == "":
		return usagef("the return thunk has no name")
	}
	return nil
}

// checkOutput checks the value of -o.
func (s *flagSet) checkOutput(path string) error {
	if s.Changed("output") && path == "" {
		return usagef("the output has no name")
	}
	return checkOutput(path)
}

// checkOutput rejects the dash, by which other programs mean standard output.
func checkOutput(path string) error {
	if path == "-" {
		return usagef("-o - names no file; ./- is a file of that name, and /dev/stdout is standard output")
	}
	return nil
}

// parseLayout reads the layout of records. Without a flag for it, the target of each object chooses.
func (f *conversionFlags) parseLayout() (err error) {
	f.patch.FixedLayout = f.set.Changed("layout") || f.set.Changed("section")
	if f.patch.Layout, err = linkerset.ParseLayout(f.layout, f.section); err != nil {
		return usageError{err}
	}
	return nil
}

// validate checks a command line that was parsed, and completes what it says.
func (f *conversionFlags) validate() error {
	f.files = f.set.Args()
	if err := cmp.Or(f.parseLayout(), f.checkNames()); err != nil {
		return err
	}
	switch { // --stapsdt=false is --no-stapsdt
	case f.stapsdt:
		f.patch.Notes = patch.WithNotes
	case f.noStapsdt || f.set.Changed("stapsdt"):
		f.patch.Notes = patch.WithoutNotes
	}
	switch {
	case f.functions:
		f.patch.Functions = patch.WithFunctions
	case f.noFunctions || f.set.Changed("functions"):
		f.patch.Functions = patch.WithoutFunctions
	}
	switch {
	case f.set.Changed("semaphores") && !f.patch.MayHaveNotes():
		return usagef("--semaphores is of no use without --stapsdt")
	case f.noStapsdt && f.stapsdt:
		return usagef("--stapsdt and --no-stapsdt exclude each other")
	case f.noFunctions && f.functions:
		return usagef("--functions and --no-functions exclude each other")
	}
	if !f.patch.MayHaveNotes() {
		return nil
	}
	switch f.semaphores {
	case allSemaphores:
		f.patch.AllSemaphores = true
	case testedSemaphores, "":
	default:
		return usagef("semaphores are %s or %s, and not %q", testedSemaphores, allSemaphores, f.semaphores)
	}
	return nil
}

// The values of --semaphores.
const (
	testedSemaphores = "tested"
	allSemaphores    = "all"
)

// wrapperFlags are the flags of what runs a linker or a compiler.
type wrapperFlags struct {
	conversionFlags
	verbose bool
	jobs    int
}

func (f *wrapperFlags) bindFlags(s *flagSet) {
	f.conversionFlags.bindFlags(s)
	f.jobs = defaultJobs()
	s.bind("verbose", &f.verbose)
	s.bind("jobs", &f.jobs)
}

func (f *wrapperFlags) validate() error {
	return cmp.Or(f.conversionFlags.validate(), checkJobs(f.jobs))
}

// conversion returns the options of a conversion.
func (f *wrapperFlags) conversion() convert.Options {
	return convert.Options{Patch: f.patch, Jobs: f.jobs, FollowThin: f.follow, Verbose: f.verbose}
}
