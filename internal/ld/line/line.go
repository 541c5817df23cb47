// Package line reads the command line of a linker: which of its words are
// input files, and in what state the linker reads them. What it does not know it
// takes for a flag without a value, which is left as it is.
//
// Most rules are those that GNU ld, gold, lld and mold have in common; Rules has the
// others. No linker is asked: one that starts to find out its own name takes longer than
// a small link.
package line

import (
	"slices"
	"strings"
)

// Kind is what an argument is.
type Kind uint8

const (
	Other   Kind = iota // a flag that names no input
	Input               // a file
	Library             // -l
)

// State is how a linker reads an input.
type State struct {
	Static  bool // -l finds archives only
	Foreign bool // a format other than ELF is asked for
	Lazy    bool // between --start-lib and --end-lib: as if it was in an archive
	At      int  // the argument that leads to it
}

// Directory is one in which libraries are searched.
type Directory struct {
	Name string // as given
	At   int    // the argument that leads to it
	Late bool   // what arguments before that name is not searched there
}

// Arg is an argument: one word, or a flag and the word that is its value.
type Arg struct {
	Words []string
	Kind  Kind
	Name  string // of a flag, without dashes: the long one, where there is one
	Value string // of a flag, or the file
	State
}

// Line is a command line.
type Line struct {
	Args        []Arg
	Relocatable bool
	Output      string // "" for a.out
	Directory   string // that mold changes to before anything else, or ""
	Sysroot     string
	Static      bool // each -l finds archives only
	Path        []Directory
	Rules       Rules    // of the linker that reads it
	Scripts     []string // that -T, --default-script and --mri-script name
	Reports     []Report
}

// Report is a file that a linker writes names of inputs to.
type Report struct {
	Path     string
	Makefile bool // it is a rule of make
}

// reports are the flags that name them.
var reports = map[string]bool{
	"Map": true, "why-extract": true, "dependency-file": true, "time-trace": true, "print-archive-stats": true, "print-symbol-counts": true,
}

// Parse reads the words behind a linker's name. Response files are expanded.
func Parse(args []string, rules Rules) *Line {
	p := parser{line: &Line{Rules: rules}}
	for len(args) > 0 {
		n := p.arg(args)
		args = args[n:]
	}
	return p.line
}

type parser struct {
	line  *Line
	state State
	saved []State // by --push-state
}

// arg reads an argument, and returns how many words it has.
func (p *parser) arg(args []string) int {
	word := args[0]
	p.state.At = len(p.line.Args)
	if len(word) < 2 || word[0] != '-' {
		// A lone dash is an input to none of the four.
		kind := Input
		if word == "-" || word == "" {
			kind = Other
		}
		p.line.Args = append(p.line.Args, Arg{Words: args[:1:1], Kind: kind, Value: word, State: p.state})
		return 1
	}
	name, value, next := flag(word, args[1:])
	n := 1
	if next && len(args) > 1 {
		value, n = args[1], 2
	}
	arg := Arg{Words: args[:n:n], Name: name, Value: value, State: p.state}
	if name == "library" && value != "" {
		arg.Kind = Library
	}
	p.line.Args = append(p.line.Args, arg)
	p.change(name, value)
	if name != "sysroot" || !p.line.Rules.OneWordSysroot || strings.HasPrefix(word, "--sysroot=") {
		p.line.keep(p.state.At, name, value)
	}
	return n
}

// change follows the state that flags make.
func (p *parser) change(name, value string) {
	switch name {
	case "format":
		p.state.Foreign = isForeign(value)
	case "static":
		if p.line.Rules.StaticIsGlobal {
			p.line.Static = true
			break
		}
		p.state.Static = true
	case "Bstatic":
		p.state.Static = true
	case "Bdynamic":
		p.state.Static = false
	case "start-lib":
		p.state.Lazy = true
	case "end-lib":
		p.state.Lazy = false
	case "push-state":
		p.saved = append(p.saved, p.state)
	case "pop-state":
		if n := len(p.saved); n > 0 {
			// --start-lib is not part of what is saved.
			p.state.Static = p.saved[n-1].Static
			if p.line.Rules.SavesFormat {
				p.state.Foreign = p.saved[n-1].Foreign
			}
			p.saved = p.saved[:n-1]
		}
	}
}

// isForeign reports whether a format is no ELF.
func isForeign(format string) bool { return format != "default" && !strings.HasPrefix(format, "elf") }

// keep notes what an argument says of the whole link.
func (l *Line) keep(at int, name, value string) {
	switch {
	case name == "relocatable":
		l.Relocatable = true
	case name == "output":
		l.Output = value
	case name == "directory":
		l.Directory = value
	case name == "sysroot":
		l.Sysroot = value
	case name == "library-path":
		l.Path = append(l.Path, Directory{Name: value, At: at})
	case name == "script" || name == "default-script" || name == "mri-script":
		l.Scripts = append(l.Scripts, value)
	case reports[name] && value != "":
		l.Reports = append(l.Reports, Report{value, name == "dependency-file"})
	}
}

// HasInputs reports whether there is anything to link.
func (l *Line) HasInputs() bool {
	return slices.ContainsFunc(l.Args, func(a Arg) bool { return a.Kind != Other })
}
