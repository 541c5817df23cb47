package main

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// option declares a flag: its name, its value, and what help and completions
// say about it. Commands that have a flag in common share its option.
type option struct {
	name     string   // without dashes
	letter   string   // "" for none
	value    string   // the name of its value in help, "" if it takes none
	optional bool     // the value may be left out
	help     string   // for --help and completions
	choices  []string // the values that it knows, nil for any
	complete complete // what its value is

	// head replaces the names and the value in an entry that pflag does not parse.
	head string
}

// choicesOf returns the texts of values.
func choicesOf[T any](values []T) []string {
	choices := make([]string, len(values))
	for i, v := range values {
		choices[i] = fmt.Sprint(v)
	}
	return choices
}

// complete says what completes the value of a flag.
type complete int

const (
	completeNothing complete = iota
	completeFile
	completeDirectory
)

// bindTo defines the flag in a set. What p points to has the default and then the value: a bool, a
// string, a number, or strings for a flag that may be repeated.
func (o *option) bindTo(f *pflag.FlagSet, p any) {
	switch p := p.(type) {
	case *bool:
		f.BoolVarP(p, o.name, o.letter, *p, o.help)
	case *string:
		f.StringVarP(p, o.name, o.letter, *p, o.help)
	case *int:
		f.FuncP(o.name, o.letter, o.help, func(s string) error { // pflag's own shows the error of package strconv
			v, err := strconv.ParseInt(s, 0, strconv.IntSize) // 0x10 too, as pflag
			if err != nil {
				return errors.New("want a whole number")
			}
			*p = int(v)
			return nil
		})
	case *[]string:
		f.VarP(&repeated{to: p}, o.name, o.letter, o.help)
	}
	if o.optional {
		f.Lookup(o.name).NoOptDefVal = ownThunk
	}
}

// takesValue reports whether the word after the flag is its value.
func (o *option) takesValue() bool { return o.value != "" && !o.optional }

// spelled returns the flag with its value, as help has it.
func (o *option) spelled() string {
	switch {
	case o.head != "":
		return o.head
	case o.optional:
		return "--" + o.name + "[=" + o.value + "]"
	case o.value != "":
		return "--" + o.name + " " + o.value
	}
	return "--" + o.name
}

// repeated is the value of a flag that may be repeated. Its first use replaces the
// default. pflag's own writes the default as CSV, which help does not show, and
// takes a tenth of what the work on a small object takes.
type repeated struct {
	to  *[]string
	set bool
}

// Set adds a value.
func (l *repeated) Set(s string) error {
	if !l.set {
		*l.to, l.set = nil, true
	}
	*l.to = append(*l.to, s)
	return nil
}

// String returns the values, separated by spaces.
func (l *repeated) String() string { return strings.Join(*l.to, " ") }

// Type returns the name of the type.
func (l *repeated) Type() string { return "strings" }
