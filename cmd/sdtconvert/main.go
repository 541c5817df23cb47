// Sdtconvert replaces calls to DTrace probe stubs with NOPs and records each site.
// See docs/sdtconvert.1.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"sdtconvert/internal/message"
	"sdtconvert/internal/process"
	"sdtconvert/internal/replace"
)

func main() {
	os.Exit(newProgram(process.Current()).run(os.Args[0], os.Args[1:]))
}

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = process.ExitFailed
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
	files       *replace.Writer // of all files that it writes
	ownsSIGPIPE atomic.Bool     // whether a broken pipe is the run's to end by
	// watchSignals makes an interrupted run leave no temporary file and no child behind. A run
	// without either does without it.
	watchSignals func()
	killChild    atomic.Pointer[func()] // kills the program that runs, nil for none

	command string // that runs; "" if the command line names none
}

func newProgram(p *process.Process) *program {
	run := &program{Process: p, files: &replace.Writer{}}
	run.watchSignals = sync.OnceFunc(run.startWatching)
	run.files.BeforeFirstFile = run.watchSignals
	return run
}

// programName returns the name in a path that the program was called by.
func programName(path string) string { return strings.TrimSuffix(filepath.Base(path), ".exe") }

// run is all of it. path is what the program was called by.
func (p *program) run(path string, args []string) int {
	name := programName(path)
	triplet, isDtrace := strings.CutSuffix(name, "dtrace")
	switch {
	case isLinkerName(name):
		f, err := p.environFlags()
		if err != nil {
			return p.report(err)
		}
		return p.link(f, name, args)
	case name == compilerLauncher:
		return p.runAsCompiler(args)
	case isDtrace && (triplet == "" || strings.HasSuffix(triplet, "-")):
		if err := p.makeProvider(args, strings.TrimSuffix(triplet, "-")); err != nil {
			return p.report(err)
		}
		return exitOK
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
	usage:  []string{"sdtconvert help [COMMAND]", "sdtconvert help --man"},
	text:   "Shows help on a command.",
	groups: []group{{options: []*option{manualOption}}},
	new:    func() invocation { return &helper{} },
}

var manualOption = &option{name: "man", help: "print the manual page, for man -l"}

// helper is what the flags of help say.
type helper struct{ manual bool }

func (h *helper) bindFlags(s *flagSet) { s.bind("man", &h.manual) }

func (h *helper) run(p *program, args []string) (bool, error) {
	text := overview()
	switch {
	case h.manual && len(args) > 0:
		return false, usagef("help --man takes no command")
	case h.manual:
		text = manual()
	case len(args) > 1:
		return false, usagef("help takes one command, and %d are given", len(args))
	case len(args) == 1:
		c, suggestion := commandNamed(args[0]), ""
		if c == nil {
			if near := message.Nearest(args[0], commandNames()); near != "" {
				suggestion = ": did you mean " + near + "?"
			}
			return false, usagef("unknown command %q%s", args[0], suggestion)
		}
		text = c.help()
	}
	_, err := io.WriteString(p.Stdout, text)
	return false, err
}

// release is the version of the program; a build may set it with -ldflags -X.
var release = "0.1.0"

// versionCommand shows the version.
var versionCommand = &command{
	name: "version", synopsis: "version, --version, -V", brief: "show the version",
	usage: []string{"sdtconvert version", "sdtconvert --version | -V"},
	text:  "Shows the version.",
	new:   func() invocation { return flagless((*program).version) },
}

func (p *program) version(args []string) (bool, error) {
	if len(args) > 0 {
		return false, usagef("version takes no arguments")
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
	return false, err
}

func (p *program) startWatching() {
	watched := p.Watch(func(sig os.Signal) {
		if sig != syscall.SIGPIPE { // by which the runtime would end an unwatched process
			p.end(sig)
		}
	}, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	p.ownsSIGPIPE.Store(slices.Contains(watched, os.Signal(syscall.SIGPIPE)))
}

// end ends the process as a signal would, without a trace of what is half written.
func (p *program) end(sig os.Signal) {
	p.files.Abandon()
	if kill := p.killChild.Load(); kill != nil && *kill != nil {
		(*kill)()
	}
	p.Exit(process.Status{Signal: sig}.ExitStatus())
}

// endingWriter is standard output or error of a run that may have files half written. A pipe without a reader ends the run.
// The error of the write shows that, because SIGPIPE may come from another pipe, which is an output.
type endingWriter struct {
	io.Writer
	run *program
}

// Write implements io.Writer.
func (o endingWriter) Write(b []byte) (int, error) {
	n, err := o.Writer.Write(b)
	if errors.Is(err, syscall.EPIPE) && o.run.ownsSIGPIPE.Load() && o.run.Exit != nil {
		o.run.end(syscall.SIGPIPE)
	}
	return n, err
}
