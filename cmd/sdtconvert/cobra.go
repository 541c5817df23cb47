package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"sdtconvert/internal/message"
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
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if command := commandNamed(c.Name()); command.wrapped != "" && errors.As(err, new(*pflag.NotExistError)) {
			return usagef("%w: write -- before %s: %s", err, command.wrapped, command.usage[0])
		}
		return flagError(c.Flags(), err)
	})
	return root
}

// newCommand makes a command with its flags, which sets failed when it has run.
func (p *program) newCommand(c *command, failed *bool) *cobra.Command {
	cmd := &cobra.Command{Use: c.name, Short: c.brief, DisableFlagParsing: c.ownFlags}
	f := cmd.Flags()
	f.SortFlags = false
	f.SetInterspersed(c.wrapped == "")
	run := c.define(p, f)
	cmd.RunE = func(_ *cobra.Command, args []string) (err error) {
		*failed, err = run(args)
		return err
	}
	return cmd
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
		err = fmt.Errorf("%w%s", err, suggestFlag(f, unknown.GetSpecifiedName()))
	}
	return usageError{err}
}

// suggestFlag returns what to add to the error about an unknown flag: the flag that was probably
// meant, or the commands that have it.
func suggestFlag(f *pflag.FlagSet, name string) string {
	var names []string
	f.VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
	if near := message.Nearest(name, names); near != "" {
		return fmt.Sprintf(": did you mean --%s?", near)
	}
	var others []string
	for _, c := range commands {
		if c.findOption(func(o *option) bool { return o.name == name }) != nil {
			others = append(others, c.name)
		}
	}
	if len(others) > 0 {
		return ": it is a flag of " + strings.Join(others, ", ")
	}
	return ""
}
