package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"sdtconvert/internal/ld"
	"sdtconvert/internal/process"
	"sdtconvert/internal/responsefile"
)

// What the environment says to what runs a linker or a compiler, beside what package ld
// asks it.
const (
	envFlags  = "SDTCONVERT_FLAGS" // flags of `sdtconvert ld`, and of `sdtconvert cc`
	envSwitch = "SDTCONVERT"       // off: only run the linker or the compiler
)

// The flags of ld that convert does not have.
var (
	linkerOption = &option{name: "linker", value: "LINKER", complete: completeFile,
		help: "the linker to run, instead of the next ld along PATH"}
	inPlaceOption = &option{name: "in-place",
		help: "convert the inputs themselves"}
	noStubsOption = &option{name: "no-stubs",
		help: "do not add probe objects"}
	noUndefinedOption = &option{name: "no-undefined-probes",
		help: "refuse to link with a probe that nothing defines if a source defines others of its provider (a warning otherwise)"}
	wrapperVerboseOption = &option{name: "verbose", letter: "v",
		help: "print a line for each site, to standard error"}
)

// ldCommand runs a linker with converted inputs.
var ldCommand = &command{
	name: "ld", synopsis: "ld [flags] -- ARGUMENT...", brief: "link, with what holds probes converted",
	usage: []string{"sdtconvert ld [flags] -- ARGUMENT...", "ld ARGUMENT..."},
	text: `Runs the linker with these arguments, and gives it converted bytes where it opens a file
that holds probes. Nothing is written but the output. In a final link it adds the
probe objects that nothing defines.

Under the name of a linker (ld, ld.bfd, ld.lld, x86_64-linux-gnu-ld: a symbolic
link), it runs the next one of that name along PATH.`,
	groups: []group{{
		options:   []*option{linkerOption, inPlaceOption, noStubsOption, noUndefinedOption, wrapperVerboseOption, jobsOption},
		asConvert: conversionOptions,
	}},
	after: `Environment:
    SDTCONVERT=off          only run the linker (also 0, no, false)
    SDTCONVERT_LD           the linker to run
    SDTCONVERT_FLAGS        the flags above, under the name of a linker`,
	exit:    "the linker's, also if a signal ends it; 1 something was wrong with an input, and nothing was linked, 2 the command line is wrong.",
	new:     func() invocation { return &ldFlags{} },
	wrapped: "the linker's arguments",
}

// isLinkerName reports whether the program was called by the name of a linker.
func isLinkerName(name string) bool {
	if strings.HasPrefix(name, "sdtconvert") {
		return false
	}
	for _, suffix := range []string{name, name[strings.LastIndex(name, "-ld")+1:]} {
		if suffix == "ld" || strings.HasPrefix(suffix, "ld.") {
			return true
		}
	}
	return name == "mold"
}

// environFlags returns the flags of the environment, which are those of ld: one variable is
// for the linker and for the compiler of a build.
func (p *program) environFlags() (*ldFlags, error) {
	f := &ldFlags{}
	s := newFlagSet(ldCommand, f)
	off, err := p.isOff()
	if err != nil {
		return nil, err
	}
	var words []string
	if !off {
		words = responsefile.Split([]byte(p.Getenv(envFlags)))
	}
	err = s.Parse(words)
	switch {
	case errors.Is(err, pflag.ErrHelp):
		err = usagef("--help is for sdtconvert ld")
	case err != nil:
		err = flagError(s.FlagSet, err)
	default:
		err = f.validate()
	}
	if err == nil && s.NArg() > 0 {
		err = usagef("%q is not a flag", s.Arg(0))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", envFlags, err)
	}
	return f, nil
}

// isOff reports whether the environment says that only the linker or the compiler runs.
func (p *program) isOff() (bool, error) {
	switch value := strings.ToLower(p.Getenv(envSwitch)); value {
	case "off", "0", "no", "false":
		return true, nil
	case "", "on", "1", "yes", "true":
		return false, nil
	}
	return false, usagef("%s=%s is neither on nor off", envSwitch, p.Getenv(envSwitch))
}

// ldFlags are the flags of ld.
type ldFlags struct {
	wrapperFlags
	linker                        string
	inPlace, noStubs, noUndefined bool
}

func (f *ldFlags) bindFlags(s *flagSet) {
	f.wrapperFlags.bindFlags(s)
	s.bind("linker", &f.linker)
	s.bind("in-place", &f.inPlace)
	s.bind("no-stubs", &f.noStubs)
	s.bind("no-undefined-probes", &f.noUndefined)
}

// run is `sdtconvert ld`.
func (f *ldFlags) run(p *program, args []string) (bool, error) {
	if err := f.validate(); err != nil {
		return false, err
	}
	if f.set.ArgsLenAtDash() != 0 {
		return false, usagef("missing -- before the linker's arguments: write sdtconvert ld -- ARGUMENT...")
	}
	return false, &statusError{status: p.link(f, "ld", args)}
}

func (f *ldFlags) validate() error {
	if err := f.wrapperFlags.validate(); err != nil {
		return err
	}
	if f.set.Changed("linker") && f.linker == "" {
		return usagef("the linker has no name")
	}
	return nil
}

// link runs the real linker, and returns its exit status, or does not return.
func (p *program) link(f *ldFlags, name string, args []string) int {
	return p.wrap(func(off bool) (process.Status, error) {
		return ld.Run(p.Process, ld.Options{
			Convert: f.conversion(), Linker: f.linker, Off: off, InPlace: f.inPlace, NoStubs: f.noStubs,
			NoUndefinedProbes: f.noUndefined,
		}, name, args)
	})
}

// wrap runs a linker or a compiler, off where nothing is converted. It returns the exit status, or
// does not return.
func (p *program) wrap(run func(off bool) (process.Status, error)) int {
	off, err := p.isOff()
	if err != nil {
		return p.report(err)
	}
	status, err := run(off)
	if err != nil {
		p.report(err)
		return exitFailed
	}
	return p.End(status)
}
