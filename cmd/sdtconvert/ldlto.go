package main

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/message"
)

// Objects for link-time optimisation hold no code. Where the linker, or its plugin,
// can be had to generate it before the link, that is converted, and takes their place.
//
// GCC's plugin does with -r, of all such objects of the line together. What they
// define stays visible then, as if the rest of the program were not known. (mold 1.10
// drops it.) lld does as a part of the whole link, of which only that is kept.

// generate generates code where any is late that holds probes.
func (l *link) generate(late []*linkInput) error {
	if len(late) == 0 {
		return nil
	}
	var errs []error
	run := l.generateGCC
	for _, in := range late {
		switch {
		case in.late.Compiler == input.LLVM && in.typ == filetype.Bitcode && l.is("lld"):
			run = l.generateLLD
		case in.late.Compiler == input.GCC && l.hasPlugin() && l.Getenv(envGCC) != "" && !l.is("lld") && !l.is("mold"):
		default:
			errs = append(errs, errLate(in))
		}
	}
	for i := range l.line.Args {
		if in := l.byArg[i]; in != nil && slices.Contains(late, in) && l.line.Args[i].Lazy {
			errs = append(errs, fmt.Errorf("%s: is link-time optimisation code that holds probes, between --start-lib and --end-lib; compile it with -fno-lto", in.path))
		}
	}
	if len(errs) > 0 {
		message.Error(l.Stderr, errors.Join(errs...))
		return errTold
	}
	if err := l.needTemp(); err != nil {
		return err
	}
	folder := filepath.Join(l.temp.path, "lto")
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	if err := run(folder); err != nil {
		return err
	}
	return l.takeGenerated(folder, late[0].late.Compiler)
}

func errLate(in *linkInput) error {
	return fmt.Errorf("%s: is %s link-time optimisation code that holds probes, and this linker does not generate it for others; %s",
		in.path, in.late.Compiler, in.late.Compiler.Advice())
}

// is reports whether a linker of this name is the real one.
func (l *link) is(name string) bool {
	real, err := filepath.EvalSymlinks(l.linker)
	return strings.Contains(filepath.Base(l.linker), name) || err == nil && strings.Contains(filepath.Base(real), name)
}

func (l *link) hasPlugin() bool {
	return slices.ContainsFunc(l.line.Args, func(a line.Arg) bool { return a.Name == "plugin" })
}

// isLate reports whether an argument is an object without code, of a compiler.
func (l *link) isLate(i int, compiler input.Compiler) bool {
	in, arg := l.byArg[i], &l.line.Args[i]
	return in != nil && arg.Kind == line.Input && !arg.Lazy && in.late.Compiler == compiler && (in.typ == filetype.Bitcode || in.elf == elf.ET_REL)
}

// envGCC is what GCC's driver tells those that it runs, and its plugin hands on.
const envGCC = "COLLECT_GCC_OPTIONS"

// generateGCC has GCC's plugin generate the code of all objects that are late. The
// libraries that the plugin would add on the way are those of the final link.
func (l *link) generateGCC(folder string) error {
	words := []string{"-r", "-o", filepath.Join(folder, "code.o")}
	for i := range l.line.Args {
		arg := &l.line.Args[i]
		switch {
		case arg.Name == "plugin-opt" && (strings.HasPrefix(arg.Value, "-pass-through=") || strings.HasPrefix(arg.Value, "-linker-output")):
		case arg.Name == "plugin" || arg.Name == "plugin-opt" || arg.Name == "m":
			words = append(words, arg.Words...)
		case l.isLate(i, input.GCC):
			words = append(words, l.byArg[i].path)
		}
		if arg.Name == "plugin" {
			words = append(words, "-plugin-opt=-linker-output-known")
		}
	}
	return l.runFirst(words, envGCC+"="+l.Getenv(envGCC)+" '-flinker-output=nolto-rel'")
}

// generateLLD has lld link, and keeps the code. Calls of stubs are undefined in that
// link, which is an error where they are hidden unless it is told to go on; the link
// proper repeats the others. Probe objects are kept for records that are yet to come.
func (l *link) generateLLD(folder string) error {
	out := filepath.Join(l.temp.path, "out")
	words := append(l.words(), "-o", out, "--lto-obj-path="+filepath.Join(folder, "code"), "--unresolved-symbols=ignore-all",
		"--noinhibit-exec", "--no-fatal-warnings", "--export-dynamic-symbol="+l.patch.ProbePrefix+"*")
	err := l.runFirst(words)
	os.Remove(out)
	return err
}

// runFirst runs the linker before it runs for the user, who is told of it only if it
// fails.
func (l *link) runFirst(words []string, env ...string) error {
	words, err := l.arguments(words, "first-arguments")
	if err != nil {
		return err
	}
	cmd := exec.Command(l.linker, words...)
	cmd.Env = append(slices.Clone(l.Environ), env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := l.start(cmd); err != nil {
		return err
	}
	err = cmd.Wait()
	sig := l.ended()
	if err != nil {
		l.Stderr.Write(l.names.Bytes(out.Bytes()))
		if sig != nil && ends(sig) {
			l.temp.remove()
			dieBy(sig)
		}
		return fmt.Errorf("%s: fails to generate the code of link-time optimisation for conversion: %w; compile what has probes with -fno-lto", l.linker, err)
	}
	return nil
}

// takeGenerated converts what was generated, and has it stand for the objects that it
// was made of, in the place of the first.
func (l *link) takeGenerated(folder string, compiler input.Compiler) error {
	entries, err := os.ReadDir(folder) // sorted
	if err != nil {
		return err
	}
	var made []*linkInput
	for i, e := range entries {
		in := &linkInput{path: l.output() + ".lto.o", file: filepath.Join(folder, e.Name())}
		if i > 0 {
			in.path = fmt.Sprintf("%s.lto.%d.o", l.output(), i)
		}
		if l.scanInput(in); in.err != nil {
			return in.err
		}
		if in.typ == filetype.ELF { // LLVM makes empty files where a part has no code
			l.names.Add(in.file, in.path)
			made = append(made, in)
		}
	}
	if len(made) == 0 {
		return errors.New("no code was generated for link-time optimisation; compile what has probes with -fno-lto")
	}
	var wanted []*linkInput
	for _, in := range made {
		if in.probes {
			wanted = append(wanted, in)
		}
	}
	if err := l.convertInputs(wanted); err != nil {
		return err
	}
	var files []string
	for _, in := range made {
		l.inputs = append(l.inputs, in)
		file := in.file
		if place, ok := l.copies[file]; ok {
			file = place
		}
		files = append(files, file)
	}
	l.generated = map[int][]string{}
	for i := range l.line.Args {
		if l.isLate(i, compiler) {
			l.generated[i] = files
			files = nil
		}
	}
	return nil
}
