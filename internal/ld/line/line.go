// Package line reads the command line of a linker as far as a look before the link asks: which
// words are input files, and what a few flags say of the whole link. The flags are those of
// GNU ld, gold, lld and mold together. What it does not know it takes for a flag without a value.
package line

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/paths"
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
}

// Arg is an argument: one word, or a flag and the word that is its value.
type Arg struct {
	Kind  Kind
	Name  string // of a flag, without dashes: the long one, where there is one
	Value string // of a flag, or the file
	State
}

// Line is a command line.
type Line struct {
	Args        []Arg
	Relocatable bool
	Output      string   // "" for a.out
	Directory   string   // that mold changes to before anything else, or ""
	Sysroot     string   // or ""
	Path        []string // of -L
	Scripts     []string // of -T and --default-script
	// Elsewhere says that flags lead to inputs that are not among the arguments.
	Elsewhere bool
	// Unfinished says that the last argument is a flag that lacks its value.
	Unfinished bool
	// Foreign says that an input behind the line is not read as ELF.
	Foreign bool
}

// Parse reads the words behind a linker's name. Response files are expanded. With savesFormat,
// --pop-state takes back a --format, as it does in gold.
func Parse(args []string, savesFormat bool) *Line {
	p := parser{line: &Line{}, savesFormat: savesFormat}
	for len(args) > 0 {
		n := p.arg(args)
		args = args[n:]
	}
	p.line.Foreign = p.state.Foreign
	return p.line
}

type parser struct {
	line        *Line
	savesFormat bool
	state       State
	saved       []State // by --push-state
}

// arg reads an argument, and returns how many words it has.
func (p *parser) arg(args []string) int {
	word := args[0]
	if len(word) < 2 || word[0] != '-' {
		// A lone dash is an input to none of the four.
		kind := Input
		if word == "-" || word == "" {
			kind = Other
		}
		p.line.Args = append(p.line.Args, Arg{Kind: kind, Value: word, State: p.state})
		return 1
	}
	name, value, next := flag(word, args[1:])
	n := 1
	if next && len(args) > 1 {
		value, n = args[1], 2
	}
	p.line.Unfinished = next && len(args) == 1
	arg := Arg{Name: name, Value: value, State: p.state}
	if name == "library" && value != "" {
		arg.Kind = Library
	}
	p.line.Args = append(p.line.Args, arg)
	p.change(name, value)
	p.line.recordFlag(name, value)
	return n
}

// change follows the state that flags make.
func (p *parser) change(name, value string) {
	switch name {
	case "format":
		if !strings.HasPrefix(value, "=") { // -b=FORMAT names a build ID to GNU ld, and is an error to others
			p.state.Foreign = isForeign(value)
		}
	case "static", "Bstatic":
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
			p.state.Static = p.saved[n-1].Static
			if p.savesFormat {
				p.state.Foreign = p.saved[n-1].Foreign
			}
			p.saved = p.saved[:n-1]
		}
	}
}

// isForeign reports whether a format is no ELF.
func isForeign(format string) bool { return format != "default" && !strings.HasPrefix(format, "elf") }

// elsewhere are flags that lead to inputs: in a script of another language, or in the place
// of those that are named.
var elsewhere = []string{"mri-script", "remap-inputs", "remap-inputs-file", "chroot"}

// recordFlag records a flag that applies to the whole link.
func (l *Line) recordFlag(name, value string) {
	switch name {
	case "relocatable":
		l.Relocatable = true
	case "output":
		l.Output = value
	case "directory":
		l.Directory = value
	case "sysroot":
		l.Sysroot = value
	case "library-path":
		l.Path = append(l.Path, value)
	case "script", "default-script":
		l.Scripts = append(l.Scripts, value)
	default:
		l.Elsewhere = l.Elsewhere || slices.Contains(elsewhere, name) || !longValues()[name] && isAbbreviated(name)
	}
}

// isAbbreviated reports whether a flag may be short for one that leads to inputs.
func isAbbreviated(name string) bool {
	return len(name) > 1 && slices.ContainsFunc(append(elsewhere, "library", "script", "default-script", "just-symbols"), func(flag string) bool {
		return strings.HasPrefix(flag, name)
	})
}

// InDirectory returns where a path leads that is given to the linker.
func (l *Line) InDirectory(path string) string {
	if l.Directory == "" || filepath.IsAbs(path) {
		return path
	}
	return paths.Join(l.Directory, path)
}

// Candidates returns the files that -l may stand for in the directories of -L, those of
// earlier directories first. Linkers differ in what they do with a system root, and which of
// the files they take; they search more directories.
func (l *Line) Candidates(arg *Arg) (files []string) {
	names := []string{"lib" + arg.Value + ".so", "lib" + arg.Value + ".a"}
	if exact, ok := strings.CutPrefix(arg.Value, ":"); ok {
		names = []string{exact}
	} else if arg.Static {
		names = names[1:]
	}
	for _, directory := range l.Path {
		for _, sign := range []string{"=", "$SYSROOT"} {
			if relative, ok := strings.CutPrefix(directory, sign); ok {
				directory = l.Sysroot + relative
			}
		}
		for _, name := range names {
			path := l.InDirectory(paths.Join(directory, name))
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				files = append(files, path)
			}
		}
	}
	return files
}

// HasInputs reports whether there is anything to link.
func (l *Line) HasInputs() bool {
	return slices.ContainsFunc(l.Args, func(a Arg) bool { return a.Kind != Other })
}
