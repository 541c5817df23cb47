package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/spf13/pflag"

	"sdtconvert/internal/message"
	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // something was wrong with a file
	exitUsage  = 2 // something was wrong with the command line

	// check could not look at a file, or was kept from looking at all. What it has found
	// in other files makes no difference.
	exitNotChecked = 3
)

// usageError is a fault of the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// statusError ends the run with a status of its own. The error is nil if all was printed.
type statusError struct {
	status int
	error
}

// program is one run of the program. It has what it may touch of the process, so that
// there can be several runs at once.
type program struct {
	*process.Process
	files       *replace.Writer        // of all files that it writes
	ownsSIGPIPE atomic.Bool            // whether a broken pipe is the run's to end by
	watch       sync.Once              // for signals
	killChild   atomic.Pointer[func()] // kills the program that runs, nil for none

	command string // that runs; "" if the command line names none
}

func newProgram(p *process.Process) *program {
	run := &program{Process: p, files: &replace.Writer{}}
	run.files.BeforeFirstFile = run.watchSignals
	return run
}

// run is all of it. name is what the program was called by.
func (p *program) run(name string, args []string) int {
	if linker, ok := linkerName(name); ok {
		return p.runAsLinker(linker, args)
	}
	if isCompilerLauncher(name) {
		return p.runAsCompiler(args)
	}
	if triplet, ok := dtraceName(name); ok {
		return p.runAsDtrace(triplet, args)
	}
	return p.runCommand(args)
}

func (p *program) report(err error) int {
	if status := (*statusError)(nil); errors.As(err, &status) {
		if status.error != nil {
			message.Error(p.Stderr, status.error)
		}
		return status.status
	}
	message.Error(p.Stderr, err)
	if errors.As(err, new(usageError)) {
		fmt.Fprintf(p.Stderr, "Try '%s'.\n", strings.TrimSpace("sdtconvert help "+p.command))
		return exitUsage
	}
	return exitFailed
}

// helpCommand shows help.
var helpCommand = &command{
	name: "help", synopsis: "help [COMMAND]", brief: "show this, or help on a command",
	usage: []string{"sdtconvert help [COMMAND]"},
	text:  "Shows help on a command.",
	define: func(p *program, _ *pflag.FlagSet) runner {
		return func(args []string) (bool, error) { return false, p.help(args) }
	},
}

func (p *program) help(args []string) error {
	text := ""
	switch len(args) {
	case 0:
		text = overview()
	case 1:
		c := commandNamed(args[0])
		if c == nil {
			return unknownWord("unknown command %q", args[0], commandNames())
		}
		text = c.help()
	default:
		return usagef("help takes one command, and %d are given", len(args))
	}
	_, err := io.WriteString(p.Stdout, text)
	return err
}

// release is the version of the program; a build may set it with -ldflags -X.
var release = "0.1.0"

// versionCommand shows the version.
var versionCommand = &command{
	name: "version", synopsis: "version, --version, -V", brief: "show the version",
	usage: []string{"sdtconvert version", "sdtconvert --version | -V"},
	text:  "Shows the version.",
	define: func(p *program, _ *pflag.FlagSet) runner {
		return func(args []string) (bool, error) { return false, p.version(args) }
	},
}

func (p *program) version(args []string) error {
	if len(args) > 0 {
		return usagef("version takes no arguments")
	}
	revision := ""
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				revision = " (" + s.Value + ")"
			}
		}
	}
	_, err := fmt.Fprintf(p.Stdout, "sdtconvert %s%s\n", release, revision)
	return err
}
