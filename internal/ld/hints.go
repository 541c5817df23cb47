package ld

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/paths"
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
	h := hints{incomplete: ln.Elsewhere}
	target := input.Target{}
	for i := range ln.Args {
		arg := &ln.Args[i]
		switch {
		case arg.Kind == line.Input:
			path := ln.InDirectory(arg.Value)
			if _, err := os.Stat(path); err != nil {
				h.incomplete = true // of what the flag before may be the value of
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
		case arg.Name == "just-symbols":
			h.files = append(h.files, hint{path: ln.InDirectory(arg.Value)})
		}
	}
	return h
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
			target = targetOfScript(src)
		} else if !ok {
			return nil
		}
		return found
	})
	return target
}

// outputFormat is the command of a linker script that names its format.
var outputFormat = regexp.MustCompile(`\bOUTPUT_FORMAT\s*\(\s*"?([^)",\s]*)`)

func targetOfScript(src *input.Source) (target input.Target) {
	text := make([]byte, min(src.Size, 4<<10))
	if n, _ := src.ReadAt(text, 0); n < len(text) {
		return target
	}
	if match := outputFormat.FindSubmatch(text); match != nil {
		if abi, ok := machines.OfFormat(string(match[1])); ok {
			return input.Target{Class: abi.Class, Data: abi.Data, Machine: abi.Machine}
		}
	}
	return target
}

// commands of linker scripts that name inputs.
var commands = [][]byte{[]byte("INPUT"), []byte("GROUP"), []byte("INCLUDE"), []byte("STARTUP")}

// beforeParenthesis matches words of a script that may be names of files: no patterns, and no more
// words of C's.
var beforeParenthesis = regexp.MustCompile(`("[^"*?\[\n]+"|[^\s"*?\[\](){};:,=]*[a-z][^\s"*?\[\](){};:,=]*)\s*\(`)

// scriptHints returns the files that a linker script names, where they are found at once. complete is
// false if it may name others, or have them found in more directories. A pipe is left to the linker, as it
// can be read once.
func scriptHints(ln *line.Line, script string) (files []hint, complete bool) {
	if info, err := os.Stat(script); err != nil || !info.Mode().IsRegular() {
		return nil, false
	}
	text, err := os.ReadFile(script)
	if err != nil {
		return nil, false
	}
	if bytes.Contains(text, []byte("TARGET")) || bytes.Contains(text, []byte("SEARCH_DIR")) {
		return nil, false
	}
	complete = true
	// GNU ld opens a file that SECTIONS names, and that is no input yet.
	for _, match := range beforeParenthesis.FindAllSubmatch(text, -1) {
		found, _ := scriptFiles(ln, script, string(bytes.Trim(match[1], `"`)))
		for _, file := range found {
			files = append(files, hint{path: file})
		}
	}
	for _, command := range commands {
		for remaining := text; ; {
			_, behind, found := bytes.Cut(remaining, command)
			if !found {
				break
			}
			names, end, _ := bytes.Cut(behind, []byte(")"))
			if deeper := bytes.LastIndexByte(names, '('); deeper > bytes.IndexByte(names, '(') { // AS_NEEDED
				inner, after, _ := bytes.Cut(end, []byte(")"))
				names, end = slices.Concat(names, []byte(" "), inner), after
			}
			found = true
			for _, name := range bytes.FieldsFunc(names, func(r rune) bool { return strings.ContainsRune(" \t\r\n(),\"", r) }) {
				found, ok := scriptFiles(ln, script, string(name))
				complete = complete && ok
				for _, file := range found {
					files = append(files, hint{path: file})
				}
			}
			remaining = end
		}
	}
	return files, complete
}

// scriptFiles returns the files that a script may name, by a path or by -l. Linkers do not agree where
// they look first. ok is false if there is none.
func scriptFiles(ln *line.Line, script, name string) (files []string, ok bool) {
	if name == "AS_NEEDED" {
		return nil, true
	}
	candidates := []string{ln.InDirectory(name), paths.Beside(script, name)}
	if library, found := strings.CutPrefix(name, "-l"); found {
		candidates = ln.Candidates(&line.Arg{Value: library})
	} else if !filepath.IsAbs(name) {
		candidates = append(candidates, ln.Candidates(&line.Arg{Value: ":" + name})...)
	}
	for _, path := range candidates {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			files = append(files, path)
		}
	}
	return files, len(files) > 0
}

// lookResult is what a look at the files of a line has found.
type lookResult struct {
	hints
	inputs []*linkInput // of the files, nil for those that are linked as they are
}

// lookAt looks at the files of a line, and at those that scripts among them name.
func (l *link) lookAt(ln *line.Line, k *examiner) lookResult {
	result := lookResult{hints: findHints(ln)}
	for i := range ln.Args {
		arg := &ln.Args[i]
		if arg.Name != "script" && arg.Name != "default-script" {
			continue
		}
		files, complete := scriptHints(ln, ln.InDirectory(arg.Value))
		for j := range files {
			files[j].binary = arg.Foreign
		}
		result.files, result.incomplete = append(result.files, files...), result.incomplete || !complete
	}
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
			if in != nil && in.script {
				files, complete := scriptHints(ln, batch[i].path)
				result.files, result.incomplete = append(result.files, files...), result.incomplete || !complete
			}
		}
	}
	return result
}
