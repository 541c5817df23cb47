package ld

// The command line of a linker is read as far as a look before the link asks: which
// words are input files, and what a few flags say of the whole link. The flags are those of
// GNU ld, gold, lld and mold together. What it does not know it takes for a flag without a value.

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/paths"
)

// argKind is what an argument is.
type argKind uint8

const (
	otherArg   argKind = iota // a flag that names no input
	inputArg                  // a file
	libraryArg                // -l
)

// inputState is how a linker reads an input.
type inputState struct {
	static  bool // -l finds archives only
	foreign bool // a format other than ELF is asked for
	lazy    bool // between --start-lib and --end-lib: as if it was in an archive
}

// lineArg is an argument: one word, or a flag and the word that is its value.
type lineArg struct {
	kind  argKind
	name  string // of a flag, without dashes: the long one, where there is one
	value string // of a flag, or the file
	inputState
}

// commandLine is the command line of a linker.
type commandLine struct {
	args        []lineArg
	relocatable bool
	output      string   // "" for a.out
	directory   string   // that mold changes to before anything else, or ""
	sysroot     string   // or ""
	libraryPath []string // of -L
	scripts     []string // of -T and --default-script
	// namesFilesElsewhere says that flags lead to inputs that are not among the arguments.
	namesFilesElsewhere bool
	// unfinished says that the last argument is a flag that lacks its value.
	unfinished bool
	// foreign says that an input behind the line is not read as ELF.
	foreign bool
}

// parseLine reads the words behind a linker's name, in which response files are expanded. With savesFormat,
// --pop-state takes back a --format, as it does in gold.
func parseLine(args []string, savesFormat bool) *commandLine {
	p := lineParser{line: &commandLine{}, savesFormat: savesFormat}
	for len(args) > 0 {
		n := p.arg(args)
		args = args[n:]
	}
	p.line.foreign = p.state.foreign
	return p.line
}

type lineParser struct {
	line        *commandLine
	savesFormat bool
	state       inputState
	saved       []inputState // by --push-state
}

// arg reads an argument, and returns how many words it has.
func (p *lineParser) arg(args []string) int {
	word := args[0]
	if len(word) < 2 || word[0] != '-' {
		// A lone dash is an input to none of the four.
		kind := inputArg
		if word == "-" || word == "" {
			kind = otherArg
		}
		p.line.args = append(p.line.args, lineArg{kind: kind, value: word, inputState: p.state})
		return 1
	}
	name, value, next := splitFlag(word, args[1:])
	n := 1
	if next && len(args) > 1 {
		value, n = args[1], 2
	}
	p.line.unfinished = next && len(args) == 1
	arg := lineArg{name: name, value: value, inputState: p.state}
	if name == "library" && value != "" {
		arg.kind = libraryArg
	}
	p.line.args = append(p.line.args, arg)
	p.change(name, value)
	p.line.recordFlag(name, value)
	return n
}

// change follows the state that flags make.
func (p *lineParser) change(name, value string) {
	switch name {
	case "format":
		if !strings.HasPrefix(value, "=") { // -b=FORMAT names a build ID to GNU ld, and is an error to others
			p.state.foreign = isForeign(value)
		}
	case "static", "Bstatic":
		p.state.static = true
	case "Bdynamic":
		p.state.static = false
	case "start-lib":
		p.state.lazy = true
	case "end-lib":
		p.state.lazy = false
	case "push-state":
		p.saved = append(p.saved, p.state)
	case "pop-state":
		if n := len(p.saved); n > 0 {
			p.state.static = p.saved[n-1].static
			if p.savesFormat {
				p.state.foreign = p.saved[n-1].foreign
			}
			p.saved = p.saved[:n-1]
		}
	}
}

// isForeign reports whether a format is no ELF.
func isForeign(format string) bool { return format != "default" && !strings.HasPrefix(format, "elf") }

// flagsToFiles are flags that lead to inputs: in a script of another language, or in the place
// of those that are named.
var flagsToFiles = []string{"mri-script", "remap-inputs", "remap-inputs-file", "chroot"}

// recordFlag records a flag that applies to the whole link.
func (l *commandLine) recordFlag(name, value string) {
	switch name {
	case "relocatable":
		l.relocatable = true
	case "output":
		l.output = value
	case "directory":
		l.directory = value
	case "sysroot":
		l.sysroot = value
	case "library-path":
		l.libraryPath = append(l.libraryPath, value)
	case "script", "default-script":
		l.scripts = append(l.scripts, value)
	default:
		l.namesFilesElsewhere = l.namesFilesElsewhere || slices.Contains(flagsToFiles, name) || !longValues()[name] && isAbbreviated(name)
	}
}

// isAbbreviated reports whether a flag may be short for one that leads to inputs.
func isAbbreviated(name string) bool {
	return len(name) > 1 && slices.ContainsFunc(append(flagsToFiles, "library", "script", "default-script", "just-symbols"), func(flag string) bool {
		return strings.HasPrefix(flag, name)
	})
}

// inDirectory returns where a path leads that is given to the linker.
func (l *commandLine) inDirectory(path string) string {
	if l.directory == "" || filepath.IsAbs(path) {
		return path
	}
	return paths.Join(l.directory, path)
}

// candidates returns the files that -l may stand for in the directories of -L, those of
// earlier directories first. Linkers differ in what they do with a system root, and which of
// the files they take; they search more directories.
func (l *commandLine) candidates(arg *lineArg) (files []string) {
	names := []string{"lib" + arg.value + ".so", "lib" + arg.value + ".a"}
	if exact, ok := strings.CutPrefix(arg.value, ":"); ok {
		names = []string{exact}
	} else if arg.static {
		names = names[1:]
	}
	for _, directory := range l.libraryPath {
		for _, sign := range []string{"=", "$SYSROOT"} {
			if relative, ok := strings.CutPrefix(directory, sign); ok {
				directory = l.sysroot + relative
			}
		}
		for _, name := range names {
			path := l.inDirectory(paths.Join(directory, name))
			if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
				files = append(files, path)
			}
		}
	}
	return files
}

// inputGenerators are flags of lld with which the output is for later compilations and links, which convert what they make of it: the
// index of distributed ThinLTO, bitcode or assembly. The second names are those of --plugin-opt.
var inputGenerators = [][2]string{{"thinlto-index-only", "thinlto-index-only"}, {"lto-emit-llvm", "emit-llvm"}, {"lto-emit-asm", "emit-asm"}}

// generatesInputs reports whether lld links nothing, but generates inputs of other runs.
func (l *commandLine) generatesInputs() bool {
	return slices.ContainsFunc(l.args, func(a lineArg) bool {
		option, _, _ := strings.Cut(a.value, "=")
		return slices.ContainsFunc(inputGenerators, func(names [2]string) bool {
			return a.name == names[0] || a.name == "plugin-opt" && option == names[1]
		})
	})
}

// hasInputs reports whether there is anything to link.
func (l *commandLine) hasInputs() bool {
	return slices.ContainsFunc(l.args, func(a lineArg) bool { return a.kind != otherArg })
}
