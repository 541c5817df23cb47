package ld

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
)

// script is a linker script.
type script struct {
	path, file string // see named
	text       *line.Script
	input      bool // it is an input, and what it names are others
}

// maxScript bounds what is read of a text, in bytes.
const maxScript = 16 << 20

func readScript(f *input.File) (*line.Script, error) {
	text, err := head(f, maxScript)
	if err != nil {
		return nil, err
	}
	return line.ParseScript(string(text)), nil
}

// head reads at most so many bytes of a file.
func head(f *input.File, most int64) ([]byte, error) {
	text := make([]byte, min(f.Size(), most))
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, fmt.Errorf("%s: %w", f.Path, err)
	}
	return text, nil
}

// readScripts reads those that flags name, and all that they include. What cannot be
// opened is the linker's to complain of.
func readScripts(ln *line.Line) ([]script, error) {
	var all []script
	seen := map[string]bool{}
	var add func(name string) error
	add = func(name string) error {
		file := ln.ScriptInput(name, name)
		if file == "" || seen[file] {
			return nil
		}
		seen[file] = true
		f, err := input.Open(file)
		if err != nil {
			return nil
		}
		defer f.Close()
		text, err := readScript(f)
		if err != nil {
			return err
		}
		all = append(all, script{path: name, file: file, text: text})
		for _, name := range text.Includes {
			if err := add(name); err != nil {
				return err
			}
		}
		return nil
	}
	for _, name := range ln.Scripts {
		if err := add(name); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// scripted are the files that scripts name.
func scripted(ln *line.Line, scripts []script) (files []named) {
	for _, s := range scripts {
		for _, name := range slices.Concat(s.text.Inputs, literal(s.text.Words)) {
			if file := ln.ScriptInput(s.file, name); file != "" {
				files = append(files, named{file, file, s.path})
			}
		}
	}
	return files
}

// literal are words that may name a file, and are neither patterns nor sections.
func literal(words []string) []string {
	var names []string
	for _, w := range words {
		section := strings.HasPrefix(w, ".") && !strings.HasPrefix(w, "./") && !strings.HasPrefix(w, "../")
		if strings.ContainsAny(w, "./") && !strings.ContainsAny(w, "*?[") && !section {
			names = append(names, w)
		}
	}
	return names
}

// checkScripts refuses a link in which a script chooses inputs by names that copies
// do not have, or has the linker read files of its own accord. wanted are the inputs
// that there are to be copies of.
func checkScripts(scan *scanner, scripts []script, wanted []*linkInput) (errs []error) {
	if len(scripts) == 0 {
		return nil
	}
	places := make([]string, len(wanted))
	for i, in := range wanted {
		places[i] = placeIn(anyTemp, in.path)
	}
	for _, s := range scripts {
		if name := readsProbes(scan, s, wanted); name != "" {
			errs = append(errs, fmt.Errorf("%s: names %s, which holds probes, and the linker would read that and no copy; link with --in-place", s.path, name))
			continue
		}
		if word, in := distinguishes(s.text, wanted, places); in != nil {
			errs = append(errs, fmt.Errorf("%s: the pattern %s does not mean the same of %s and of a converted copy; link with --in-place", s.path, word, in.path))
		}
	}
	return errs
}

// anyTemp stands for the temporary folder that there will be.
var anyTemp = filepath.Join(string(filepath.Separator)+"tmp", tempPrefix+"0")

// distinguishes finds a pattern that chooses an input and not its copy, or the other
// way round.
func distinguishes(text *line.Script, wanted []*linkInput, places []string) (pattern string, _ *linkInput) {
	for _, word := range text.Words {
		for i, in := range wanted {
			if line.Selects(word, in.path, in.isArchive()) != line.Selects(word, places[i], in.isArchive()) {
				return word, in
			}
		}
	}
	return "", nil
}

// readsProbes returns the name of a file with probes that a script has the linker
// read.
func readsProbes(scan *scanner, s script, wanted []*linkInput) string {
	names := literal(s.text.Words)
	if !s.input { // else its inputs are the line's
		names = append(names, s.text.Inputs...)
	}
	for _, name := range names {
		file := scan.line.ScriptInput(s.file, name)
		if file == "" {
			continue
		}
		for _, in := range wanted {
			if sameFile(in.file, file) {
				return name
			}
		}
		if in := scan.input(named{path: file, file: file}); in.probes || in.err != nil {
			return name
		}
	}
	return ""
}
