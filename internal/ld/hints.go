package ld

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/parallel"
)

// hint is a file that a linker probably reads.
type hint struct {
	path     string
	word     string // of the line, "" if a script names it
	binary   bool   // it is linked as it is
	lazy     bool   // it is between --start-lib and --end-lib
	isOnLine bool   // the line names the file itself, so that the linker surely reads it
}

// hints are the files that a line leads to, as far as a look at it tells. No search of a
// linker is repeated: a file that this misses is converted when it is opened.
type hints struct {
	files []hint
	// incomplete says that the linker will read files that are not among them.
	incomplete bool
}

// findHints finds the files that a line names, and that -l probably finds.
func findHints(ln *line.Line) hints {
	h := hints{incomplete: ln.Elsewhere || len(ln.Scripts) > 0}
	target := input.Target{}
	for i := range ln.Args {
		arg := &ln.Args[i]
		switch {
		case arg.Kind == line.Input:
			path := ln.InDirectory(arg.Value)
			if !isRegular(path) { // a pipe can be read once, and what is missing may be the value of the flag before
				h.incomplete = true
				continue
			}
			h.files = append(h.files, hint{path: path, word: arg.Value, binary: arg.Foreign, lazy: arg.Lazy, isOnLine: true})
			if target == (input.Target{}) && !arg.Foreign {
				target = targetOf(path)
			}
		case arg.Kind == line.Library:
			files := fitting(ln.Candidates(arg), target)
			h.incomplete = h.incomplete || len(files) == 0
			for _, file := range files {
				file.word, file.binary, file.lazy = "-l"+arg.Value, arg.Foreign, arg.Lazy
				h.files = append(h.files, file)
			}
		case arg.Name == "plugin":
			h.incomplete = h.incomplete || !slices.Contains(compilerPlugins, filepath.Base(arg.Value))
		case arg.Name == "just-symbols":
			h.files = append(h.files, hint{path: ln.InDirectory(arg.Value)})
		}
	}
	return h
}

// compilerPlugins add no other inputs than code that they generate. Others add libraries, as libdep of binutils does.
var compilerPlugins = []string{"liblto_plugin.so", "LLVMgold.so"}

func isRegular(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}

// checkPipes refuses an input that is a pipe if the output has no symbols, which would show that probes of the input
// are not converted.
func checkPipes(ln *line.Line) error {
	if !hasFlag(ln, "s") && !hasFlag(ln, "strip-all") {
		return nil
	}
	for i := range ln.Args {
		path := ln.InDirectory(ln.Args[i].Value)
		if info, err := os.Stat(path); ln.Args[i].Kind == line.Input && err == nil && info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0 {
			return fmt.Errorf("%s: is a pipe, and with -s the output does not show whether its probes are converted; link a file, or strip the output afterwards", path)
		}
	}
	return nil
}

// isProgram reports whether a link is of a program or a library of a C library, whatever its objects look like: it has a
// dynamic linker, or the C library's start of initialisation. No kernel has either.
func isProgram(ln *line.Line) bool {
	return slices.ContainsFunc(ln.Args, func(a line.Arg) bool {
		return a.Name == "dynamic-linker" || a.Kind == line.Input && filepath.Base(a.Value) == "crti.o"
	})
}

// fitting returns the first of the files that are for a target: a linker passes over the others.
func fitting(files []string, target input.Target) []hint {
	for _, file := range files {
		if t := targetOf(file); t == (input.Target{}) || target == (input.Target{}) || t == target {
			return []hint{{path: file}}
		}
	}
	return nil
}

// targetOf returns what an ELF file is made for, the first in an archive, or the format that a script
// names; nothing for others.
func targetOf(file string) (target input.Target) {
	found := errors.New("found")
	input.Each(file, input.Options{FollowThin: true}, func(src *input.Source) error {
		var ok bool
		if target, _, ok = src.Ident(); !ok && src.Member == nil {
			target = targetOfScript(file)
		} else if !ok {
			return nil
		}
		return found
	})
	return target
}

// lookResult is what a look at the files of a line has found.
type lookResult struct {
	hints
	inputs []*linkInput // of the files, nil for those that are linked as they are
}

// lookAt looks at the files of a line, and at those that scripts of libraries among them name.
func (l *link) lookAt(ln *line.Line, k *examiner) lookResult {
	result := lookResult{hints: findHints(ln)}
	seen := map[string]bool{}
	for from := 0; from < len(result.files); {
		batch := result.files[from:]
		batch = slices.DeleteFunc(slices.Clone(batch), func(h hint) bool {
			again := seen[h.path] && !h.binary
			seen[h.path] = seen[h.path] || !h.binary
			return again
		})
		result.files = append(result.files[:from:from], batch...)
		inputs := make([]*linkInput, len(batch))
		parallel.Each(len(batch), l.Convert.Jobs, func(i int) {
			if !batch[i].binary {
				inputs[i] = k.examine(batch[i].path, batch[i].path)
				inputs[i].optional, inputs[i].word = batch[i].lazy, batch[i].word
			}
		})
		result.inputs = append(result.inputs, inputs...)
		from = len(result.files)
		for i, in := range inputs {
			result.incomplete = result.incomplete || in != nil && in.addsLibraries
			if in != nil && in.script {
				files, complete := libraryHints(ln, batch[i].path)
				result.files, result.incomplete = append(result.files, files...), result.incomplete || !complete
			}
		}
	}
	return result
}
