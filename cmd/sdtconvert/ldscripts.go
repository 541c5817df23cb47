package main

import (
	"fmt"
	"path/filepath"
	"strings"

	"sdtconvert/internal/ld/line"
)

// addScripted makes inputs of the files that the scripts of flags name, to be
// converted in place.
func (l *link) addScripted(scripts []*linkInput) {
	for _, s := range scripts {
		for _, name := range append(s.text.Inputs, literal(s.text.Words)...) {
			if file := l.line.ScriptInput(s.file, name); file != "" {
				l.addInput(file, file, s.path)
			}
		}
	}
	l.scan()
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
// do not have, or has the linker read files of its own accord.
func (l *link) checkScripts(scripts, wanted []*linkInput) (errs []error) {
	for _, in := range l.inputs {
		if in.text != nil {
			scripts = append(scripts, in)
		}
	}
	if len(scripts) == 0 {
		return nil
	}
	places := map[*linkInput]string{}
	for _, in := range wanted {
		absolute, err := filepath.Abs(in.file)
		if err != nil {
			return []error{err}
		}
		// Any temporary folder stands for the one that there will be.
		places[in] = filepath.Join(string(filepath.Separator)+"tmp", "sdtconvert-ld-0", absolute)
	}
	for _, s := range scripts {
		if name := l.readsProbes(s, wanted); name != "" {
			errs = append(errs, fmt.Errorf("%s: names %s, which holds probes, and the linker would read that and no copy; link with --in-place", s.path, name))
			continue
		}
	words:
		for _, word := range s.text.Words {
			for _, in := range wanted {
				if line.Selects(word, in.path, in.isArchive()) != line.Selects(word, places[in], in.isArchive()) {
					errs = append(errs, fmt.Errorf("%s: the pattern %s does not mean the same of %s and of a converted copy; link with --in-place", s.path, word, in.path))
					break words
				}
			}
		}
	}
	return errs
}

// readsProbes returns the name of a file with probes that a script has the linker
// read.
func (l *link) readsProbes(s *linkInput, wanted []*linkInput) string {
	names := literal(s.text.Words)
	if l.known[s.path] != s { // else its inputs are the line's
		names = append(names, s.text.Inputs...)
	}
	for _, name := range names {
		file := l.line.ScriptInput(s.file, name)
		if file == "" {
			continue
		}
		for _, in := range wanted {
			if sameFile(in.file, file) {
				return name
			}
		}
		in := &linkInput{path: file, file: file}
		if l.scanInput(in); in.probes || in.err != nil {
			return name
		}
	}
	return ""
}
