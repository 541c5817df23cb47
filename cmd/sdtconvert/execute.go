package main

import (
	"errors"
	"fmt"
	"io"
	"strings"

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
	f := newFlags(c, pflag.NewFlagSet(c.name, pflag.ContinueOnError))
	if c.ownFlags {
		return c.run(p, f, args)
	}
	switch err := f.Parse(args); {
	case errors.Is(err, pflag.ErrHelp):
		_, err := io.WriteString(p.Stdout, help())
		return false, err
	case err != nil && c.wrapped != "" && errors.As(err, new(*pflag.NotExistError)):
		return false, usagef("%w: write -- before %s: %s", err, c.wrapped, c.usage[0])
	case err != nil:
		return false, flagError(f.FlagSet, err)
	}
	return c.run(p, f, f.Args())
}

// flagError is the usage error for what parsing a command line has returned, but a request for help.
func flagError(f *pflag.FlagSet, err error) error {
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
