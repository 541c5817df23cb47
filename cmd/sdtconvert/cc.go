package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"sdtconvert/internal/cc"
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
		manual:    "cc",
		options:   []*option{wrapperVerboseOption, jobsOption},
		asConvert: conversionOptions,
	}},
	after: func() string {
		return `Environment:
    SDTCONVERT=off          only run the compiler (also 0, no, false)
    SDTCONVERT_FLAGS        the flags above, for sdtconvert-cc; those that only ld has
                            are ignored`
	},
	exit: "the compiler's, also if a signal ends it; 1 an object cannot be converted, 2 the command line is wrong.",
	define: func(p *program, f *pflag.FlagSet) runner {
		flags := wrapperFlags(f)
		return func(args []string) (bool, error) { return false, p.runCompiler(flags, args) }
	},
	wrapped: "the compiler",
}

// isCompilerLauncher reports whether the program was called by the name under which it runs
// a compiler.
func isCompilerLauncher(program string) bool {
	return strings.TrimSuffix(filepath.Base(program), ".exe") == compilerLauncher
}

// runAsCompiler is the program under that name.
func (p *program) runAsCompiler(words []string) int {
	f, err := p.environFlags()
	if err == nil && len(words) == 0 {
		err = usagef("missing COMPILER")
	}
	if err != nil {
		return p.report(err)
	}
	return p.compile(f.flags, words)
}

// runCompiler is `sdtconvert cc`.
func (p *program) runCompiler(f *flags, words []string) error {
	if _, err := f.validate(); err != nil {
		return err
	}
	if f.ArgsLenAtDash() != 0 || len(words) == 0 {
		return missingCompiler(f.Args())
	}
	if status := p.compile(f, words); status != exitOK {
		return &statusError{status: status}
	}
	return nil
}

// missingCompiler returns the usage error for words that do not follow a --.
func missingCompiler(words []string) error {
	if len(words) == 0 {
		return usagef("missing compiler: write sdtconvert cc -- gcc -c ...")
	}
	return usagef("missing -- before the compiler: write sdtconvert cc -- %s", strings.Join(words, " "))
}

// compile runs the compiler, and returns its exit status, or does not return.
func (p *program) compile(f *flags, words []string) int {
	off, err := p.isOff()
	if err != nil {
		return p.report(err)
	}
	status, err := cc.Run(p.Process, cc.Options{Convert: f.conversion(0), Off: off}, words)
	if err != nil {
		p.report(err)
		return exitFailed
	}
	return p.End(status)
}
