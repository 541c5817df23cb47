package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// execute runs a command with its arguments; nil is for convert where no command is named,
// whose help is the overview.
func (p *program) execute(c *command, args []string) (failed bool, err error) {
	help := overview
	if c != nil {
		help = c.help
	} else {
		c = convertCommand
	}
	root := p.newRoot()
	root.SetHelpCommand(&cobra.Command{Use: helpCommand.name, Hidden: true}) // not cobra's
	root.AddCommand(p.newCommand(c, &failed))
	var unprinted error
	root.SetHelpFunc(func(*cobra.Command, []string) { _, unprinted = io.WriteString(p.Stdout, help()) })
	root.SetArgs(append([]string{c.name}, args...))
	if err := root.Execute(); err != nil {
		return failed, err
	}
	return failed, unprinted
}

// newRoot makes the command that the others are below. It prints nothing itself.
func (p *program) newRoot() *cobra.Command {
	root := &cobra.Command{Use: "sdtconvert", SilenceErrors: true, SilenceUsage: true}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetOut(p.Stdout)
	root.SetErr(p.Stderr)
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return flagError(c.Flags(), err) })
	return root
}

// newCommand makes a command with its flags, which sets failed when it has run.
func (p *program) newCommand(c *command, failed *bool) *cobra.Command {
	made := &cobra.Command{Use: c.name, Short: c.brief, DisableFlagParsing: c.ownFlags}
	f := made.Flags()
	f.SortFlags = false
	f.SetInterspersed(!c.wraps)
	run := c.define(p, f)
	made.RunE = func(_ *cobra.Command, args []string) (err error) {
		*failed, err = run(args)
		return err
	}
	return made
}

// newFlagSet makes an empty set of flags outside of a command. It prints nothing.
func newFlagSet(name string) *pflag.FlagSet {
	f := pflag.NewFlagSet(name, pflag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.Usage = func() {}
	return f
}

// flagError is the usage error for what parsing a command line has returned. A request for
// help is returned as it is.
func flagError(f *pflag.FlagSet, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	if unknown := (*pflag.NotExistError)(nil); errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
		if near := nearest(unknown.GetSpecifiedName(), names); near != "" {
			err = fmt.Errorf("%w: did you mean --%s?", err, near)
		}
	}
	return usageError{err}
}
