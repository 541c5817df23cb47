package main

import (
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	"github.com/spf13/pflag"
)

// Exit statuses.
const (
	exitOK     = 0
	exitFailed = 1 // something was wrong with a file
	exitUsage  = 2 // something was wrong with the command line
)

// usageError is a fault of the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run is the whole program: it never exits and never touches what it is not
// given, so that tests can call it.
func run(args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "ld" { // its response files are the linker's
		return runLinker(args[1:], stdout, stderr)
	}
	args, err := expandResponseFiles(args)
	if err != nil {
		return report(err, stderr)
	}
	name := "convert"
	if len(args) > 0 {
		if _, ok := commands[args[0]]; ok {
			name, args = args[0], args[1:]
		}
	}
	failed, err := commands[name](args, stdout, stderr)
	if errors.Is(err, pflag.ErrHelp) {
		_, err = help([]string{name}, stdout, stderr)
	}
	if err != nil {
		return report(err, stderr)
	}
	if failed {
		return exitFailed
	}
	return exitOK
}

// command runs with its arguments, and tells whether anything failed that it
// has reported itself.
type command func(args []string, stdout, stderr io.Writer) (failed bool, err error)

var commands map[string]command

func init() {
	commands = map[string]command{
		"check": checkProbes, "convert": convert, "inspect": inspect, "list": list, "resolve": resolveAddresses,
		"sites": listSites, "stubs": makeStubs, "help": help,
		"version": version, "--version": version, "-V": version,
	}
}

func report(err error, stderr io.Writer) int {
	printError(stderr, err)
	if errors.As(err, new(usageError)) {
		fmt.Fprintf(stderr, "Try 'sdtconvert help'.\n")
		return exitUsage
	}
	return exitFailed
}

func help(args []string, stdout, _ io.Writer) (bool, error) {
	name := ""
	if len(args) > 0 {
		name = args[0]
	}
	text, ok := usages[name]
	if !ok || len(args) > 1 {
		return false, usagef("no help on %q", args)
	}
	_, err := io.WriteString(stdout, text)
	return false, err
}

// release is the version of the program; a build may set it with -ldflags -X.
var release = "0.1.0"

func version(args []string, stdout, _ io.Writer) (bool, error) {
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
	_, err := fmt.Fprintf(stdout, "sdtconvert %s%s\n", release, revision)
	return false, err
}
