//go:build freebsd && (amd64 || arm64)

// Freebsd-dtrace lists the probes of FreeBSD's kernel and of the programs that run, and
// counts how often they fire.
// It speaks to /dev/dtrace/dtrace itself, so it needs none of DTrace's libraries: it is
// for small systems, as those that boot from a memory disk.
//
//	cd examples/freebsd-dtrace && GOOS=freebsd GOARCH=amd64 go build -o kdtrace
//	kdtrace list 'tcp:::'
//	kdtrace count -for 10s -args 2 'tcp:::' 'fbt:kernel:tcp_output:'
//	kdtrace count 'tcp:::send' -- ls -l
//	kdtrace list -types 'shop*:::'
//	kdtrace count -args 3 'shop*:::' -- ./shop
//
// A probe is provider:module:function:name, as dtrace(1) takes it with -n: an empty
// part stands for all, and a part may hold *, ? and [...]. The provider of a program's
// probes ends in the number of the process. Processes that start while kdtrace counts
// are traced too.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "kdtrace:", err)
		os.Exit(1)
	}
}

var errUsage = errors.New("usage: kdtrace list [-types] [PROBE...] | kdtrace count [-for DURATION] [-args N] PROBE... [-- COMMAND...]")

func run(args []string) error {
	if len(args) == 0 {
		return errUsage
	}
	switch args[0] {
	case "list":
		return list(args[1:])
	case "count":
		return count(args[1:])
	}
	return errUsage
}

// list prints the probes that one of the patterns matches, as dtrace -l does.
func list(args []string) error {
	flags := flag.NewFlagSet("list", flag.ContinueOnError)
	types := flags.Bool("types", false, "print the types of arguments, and what each is translated to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	patterns := flags.Args()
	d, err := open()
	if err != nil {
		return err
	}
	defer d.close()
	fmt.Printf("%5s %10s %17s %33s %s\n", "ID", "PROVIDER", "MODULE", "FUNCTION", "NAME")
	return d.eachProbe(func(p probe) {
		if len(patterns) > 0 && !slices.ContainsFunc(patterns, p.matches) {
			return
		}
		fmt.Printf("%5d %10s %17s %33s %s\n", p.id, p.provider, p.module, p.function, p.name)
		for i := 0; *types; i++ {
			native, translated, ok := d.argument(p.id, i)
			if !ok {
				break
			}
			if translated != "" && translated != native {
				native += " -> " + translated
			}
			fmt.Printf("\targs[%d] %s\n", i, native)
		}
	})
}

// count enables probes for a time, or while a command runs, and prints the hits of each.
func count(args []string) error {
	flags := flag.NewFlagSet("count", flag.ContinueOnError)
	duration := flags.Duration("for", 5*time.Second, "how long to trace, if there is no command")
	values := flags.Int("args", 0, "how many arguments of the last hit to print, at most 10")
	if err := flags.Parse(args); err != nil {
		return err
	}
	patterns, command := flags.Args(), []string(nil)
	if i := slices.Index(patterns, "--"); i >= 0 {
		patterns, command = patterns[:i], patterns[i+1:]
	}
	if len(patterns) == 0 || *values < 0 || *values > maxArguments {
		return errUsage
	}
	d, err := open()
	if err != nil {
		return err
	}
	defer d.close()
	matched, err := d.enable(patterns, *values)
	if err != nil {
		return err
	}
	fmt.Printf("matched %d probes\n", matched)
	if err := d.start(); err != nil {
		return err
	}
	if len(command) > 0 {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
		err = cmd.Run()
	} else {
		time.Sleep(*duration)
	}
	if stopErr := d.stop(); stopErr != nil {
		return stopErr
	}
	if snapErr := d.print(); snapErr != nil {
		return snapErr
	}
	return err
}

// probe is the description of a probe.
type probe struct {
	id                               uint32
	provider, module, function, name string
}

// matches reports whether a pattern is one of the probe. Parts that are missing at its
// front match everything, as in dtrace -n.
func (p probe) matches(pattern string) bool {
	parts := split(pattern)
	for i, have := range []string{p.provider, p.module, p.function, p.name} {
		if ok, err := path.Match(parts[i], have); parts[i] != "" && (err != nil || !ok) {
			return false
		}
	}
	return true
}

// split returns the four parts of a pattern.
func split(pattern string) [4]string {
	var parts [4]string
	given := strings.Split(pattern, ":")
	if len(given) > len(parts) {
		given = given[len(given)-len(parts):]
	}
	copy(parts[len(parts)-len(given):], given)
	return parts
}

func (p probe) String() string {
	return p.provider + ":" + p.module + ":" + p.function + ":" + p.name
}
