package ld

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/ld/rename"
	"sdtconvert/internal/paths"
	"sdtconvert/internal/process"
)

// Objects for link-time optimisation hold no code. Where the linker, or its plugin,
// can be had to generate it before the link, that is converted, and takes their place.
//
// GCC's plugin does with -r, of all such objects of the line together. What they
// define stays visible then, as if the rest of the program were not known. (mold 1.10
// drops it.) lld does as a part of the whole link, of which only that is kept.

// generated is code, as the linker gets it.
type generated struct {
	byArg  map[int][]string // what stands for arguments, of objects without code
	inputs []*linkInput     // as it was generated
	converted
}

// generate generates the code of inputs that are late, and converts it. done are the
// others that were converted.
func (l *link) generate(scan *scanner, inputs scanned, chosen choice, done converted) (generated, error) {
	if len(chosen.late) == 0 {
		return generated{}, nil
	}
	directory, err := l.session.mkdir("lto")
	if err != nil {
		return generated{}, err
	}
	names := l.session.renames(done.names)
	if chosen.by == byLLD {
		out := l.session.inTemp("out")
		stand := substitutions{copies: done.copies, scripts: done.scripts}
		err = l.runFirst(wordsLLD(stand.words(scan.line, inputs.byArg), directory, out, l.Convert.Patch.ProbePrefix), names)
		os.Remove(out)
	} else {
		err = l.runFirst(wordsGCC(scan.line, inputs.byArg, directory), names, envGCC+"="+l.Getenv(envGCC)+" '-flinker-output=nolto-rel'")
	}
	if err != nil {
		return generated{}, err
	}
	return l.takeGenerated(scan, inputs, directory, chosen.by.compiler())
}

func hasPlugin(ln *line.Line) bool { return hasFlag(ln, "plugin") }

func hasFlag(ln *line.Line, name string) bool {
	return slices.ContainsFunc(ln.Args, func(a line.Arg) bool { return a.Name == name })
}

// takesIntermediate reports whether the linker takes the intermediate code of fat objects of a
// compiler, instead of their machine code.
func takesIntermediate(ln *line.Line, l linker, c input.Compiler) bool {
	if l.is("lld") {
		return c == input.LLVM && hasFlag(ln, "fat-lto-objects")
	}
	return hasPlugin(ln)
}

// envGCC is what GCC's driver tells those that it runs, and its plugin hands on.
const envGCC = "COLLECT_GCC_OPTIONS"

// wordsGCC returns words that have GCC's plugin generate the code of all objects that are late. The
// libraries that the plugin would add on the way are those of the final link.
func wordsGCC(ln *line.Line, byArg map[int]*linkInput, directory string) []string {
	words := []string{"-r", "-o", paths.Join(directory, "code.o")}
	for i := range ln.Args {
		arg := &ln.Args[i]
		switch {
		case arg.Name == "plugin-opt" && (strings.HasPrefix(arg.Value, "-pass-through=") || strings.HasPrefix(arg.Value, "-linker-output")):
		case arg.Name == "plugin" || arg.Name == "plugin-opt" || arg.Name == "m":
			words = append(words, arg.Words...)
		case isLate(arg, byArg[i], input.GCC):
			words = append(words, byArg[i].path)
		}
		if arg.Name == "plugin" {
			words = append(words, "-plugin-opt=-linker-output-known")
		}
	}
	return words
}

// isLate reports whether an argument is an object without code, of a compiler.
func isLate(arg *line.Arg, in *linkInput, compiler input.Compiler) bool {
	return in != nil && arg.Kind == line.Input && !arg.Lazy && in.isLate(compiler)
}

// wordsLLD returns words that have lld link, and keep the code. Calls of stubs are undefined in that
// link, which is an error where they are hidden unless it is told to go on; the link
// proper repeats the others. Probe objects are kept for records that are yet to come.
func wordsLLD(words []string, directory, out, probePrefix string) []string {
	return append(words, "-o", out, "--lto-obj-path="+paths.Join(directory, "code"), "--unresolved-symbols=ignore-all",
		"--noinhibit-exec", "--no-fatal-warnings", "--export-dynamic-symbol="+probePrefix+"*")
}

// runFirst runs the linker before it runs for the user, and reports only failures.
func (l *link) runFirst(words []string, names *rename.Names, env ...string) error {
	words, err := l.arguments(words, "first-arguments")
	if err != nil {
		return err
	}
	cmd := l.linker.command(words)
	cmd.Env = append(slices.Clone(cmd.Env), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := l.session.Start(cmd); err != nil {
		return err
	}
	err = cmd.Wait()
	sig := l.session.Ended()
	if err == nil {
		return nil
	}
	l.Stderr.Write(names.Bytes(out.Bytes()))
	if sig != nil && process.Ends(sig) {
		return diedOf(sig)
	}
	return fmt.Errorf("%s: fails to generate the code of link-time optimisation for conversion: %w; compile what has probes with -fno-lto", l.linker.path, err)
}

// takeGenerated converts what was generated, and has it stand for the objects that it
// was made of, in the place of the first.
func (l *link) takeGenerated(scan *scanner, from scanned, directory string, compiler input.Compiler) (generated, error) {
	inputs, err := readGenerated(scan, directory)
	if err != nil {
		return generated{}, err
	}
	var wanted []*linkInput
	var names []renamed
	for _, in := range inputs {
		names = append(names, renamed{in.file, in.path})
		if in.probes {
			wanted = append(wanted, in)
		}
	}
	done, err := l.convertInputs(scan.line, wanted, slices.Concat(from.inputs, inputs))
	if err != nil {
		return generated{}, err
	}
	done.names = append(names, done.names...)
	return generated{byArg: replacements(scan.line, from.byArg, compiler, done.files(inputs)), inputs: inputs, converted: done}, nil
}

// replacements makes the files replace the first of the late arguments, and nothing the
// others.
func replacements(ln *line.Line, byArg map[int]*linkInput, compiler input.Compiler, files []string) map[int][]string {
	stand := map[int][]string{}
	for i := range ln.Args {
		if isLate(&ln.Args[i], byArg[i], compiler) {
			stand[i] = files
			files = nil
		}
	}
	return stand
}

// readGenerated looks at what was generated, and names it after the output.
func readGenerated(scan *scanner, directory string) (inputs []*linkInput, err error) {
	entries, err := os.ReadDir(directory) // sorted
	if err != nil {
		return nil, err
	}
	for i, e := range entries {
		path := output(scan.line) + ".lto.o"
		if i > 0 {
			path = fmt.Sprintf("%s.lto.%d.o", output(scan.line), i)
		}
		in := scan.input(named{path: path, file: paths.Join(directory, e.Name())})
		if in.err != nil {
			return nil, in.err
		}
		if in.typ == filetype.ELF { // LLVM makes empty files where a part has no code
			inputs = append(inputs, in)
		}
	}
	if len(inputs) == 0 {
		return nil, errors.New("no code was generated for link-time optimisation; compile what has probes with -fno-lto")
	}
	return inputs, nil
}
