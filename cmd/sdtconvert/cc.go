package main

import (
	"strings"

	"sdtconvert/internal/cc"
	"sdtconvert/internal/process"
)

// compilerLauncher is the name under which the program runs a compiler.
const compilerLauncher = "sdtconvert-cc"

// ccCommand runs a compiler, and converts the objects that it writes.
var ccCommand = &command{
	name: "cc", synopsis: "cc [flags] -- COMPILER ARGUMENT...", brief: "compile, and convert the objects",
	usage: []string{"sdtconvert cc [flags] -- COMPILER ARGUMENT...", "sdtconvert-cc COMPILER ARGUMENT..."},
	text: `Runs a compiler with these arguments, and then converts in place the objects that it
has written. Other files stay as they are, and so do objects without machine code,
for link-time optimisation. An object that cannot be converted is removed. The compiler is gcc or
clang, or a program such as ccache that runs one.

Under the name sdtconvert-cc (a symbolic link), it takes its flags from the
environment.`,
	groups: []group{{
		options:   []*option{wrapperVerboseOption, jobsOption},
		asConvert: conversionOptions,
	}},
	after: `Environment:
    SDTCONVERT=off          only run the compiler (also 0, no, false)
    SDTCONVERT_FLAGS        the flags above, for sdtconvert-cc; those that only ld has
                            are ignored`,
	exit:    "the compiler's, also if a signal ends it; 1 an object cannot be converted, 2 the command line is wrong.",
	new:     func() invocation { return &ccFlags{} },
	wrapped: "the compiler",
}

// runAsCompiler is the program under the name compilerLauncher.
func (p *program) runAsCompiler(words []string) int {
	f, err := p.environFlags()
	if err == nil && len(words) == 0 {
		err = usagef("missing COMPILER")
	}
	if err != nil {
		return p.report(err)
	}
	return p.compile(&f.wrapperFlags, words)
}

// ccFlags are the flags of cc.
type ccFlags struct{ wrapperFlags }

// run is `sdtconvert cc`.
func (f *ccFlags) run(p *program, words []string) (bool, error) {
	err := f.validate()
	switch {
	case err != nil:
	case f.set.NArg() == 0:
		err = usagef("missing compiler: write sdtconvert cc -- gcc -c ...")
	case f.set.ArgsLenAtDash() != 0:
		err = usagef("missing -- before the compiler: write sdtconvert cc -- %s", strings.Join(words, " "))
	default:
		err = &statusError{status: p.compile(&f.wrapperFlags, words)}
	}
	return false, err
}

// compile runs the compiler, and returns its exit status, or does not return.
func (p *program) compile(f *wrapperFlags, words []string) int {
	return p.wrap(func(off bool) (process.Status, error) {
		return cc.Run(p.Process, cc.Options{Convert: f.conversion(), Off: off}, words)
	})
}
