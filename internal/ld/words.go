package ld

import (
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/internal/ld/line"
	"sdtconvert/linkerset"
)

// substitutions are what the linker reads in the place of inputs, and beside them.
type substitutions struct {
	copies    map[string]string // of inputs, by the paths that the linker is told
	scripts   map[string]string // copies of scripts, by what a flag calls them
	generated map[int][]string  // what stands for arguments
	added     *addition         // or nil
	flags     []string          // before all arguments
}

// none reports whether the linker reads what it would read by itself, whatever flags it
// gets.
func (s substitutions) none() bool {
	return len(s.copies) == 0 && s.added == nil && s.generated == nil
}

// words returns those of a line with all that in it.
func (s substitutions) words(ln *line.Line, byArg map[int]*linkInput) []string {
	words := slices.Clone(s.flags)
	for i := range ln.Args {
		if s.added != nil && s.added.at == i {
			words = append(words, s.added.file)
		}
		if files, ok := s.generated[i]; ok {
			words = append(words, files...)
			continue
		}
		if in := byArg[i]; in != nil {
			if place, ok := s.copies[in.path]; ok {
				if !ln.Repeats(i) {
					words = append(words, place)
				}
				continue
			}
		}
		words = append(words, s.flag(&ln.Args[i])...)
	}
	if s.added != nil && s.added.at == len(ln.Args) {
		words = append(words, s.added.file)
	}
	return words
}

// flag returns the words of an argument, with the copy of a script that it names.
func (s substitutions) flag(arg *line.Arg) []string {
	place, ok := s.scripts[arg.Value]
	if !ok || arg.Name != "script" && arg.Name != "default-script" {
		return arg.Words
	}
	words := slices.Clone(arg.Words)
	last := len(words) - 1
	words[last] = strings.TrimSuffix(words[last], arg.Value) + place
	return words
}

// bounds returns the flags that make the linker define the bounds of the sections of
// records of some kinds. Linkers define __start_<section> and __stop_<section> only if something
// refers to them. Nothing in a FreeBSD kernel does: its linker_file_lookup_set asks for
// the symbols by name, and says ENOENT if they are missing.
func bounds(layout linkerset.Layout, kinds []arch.Kind) []string {
	if layout.Format != linkerset.FreeBSD {
		return nil
	}
	var words []string
	for _, kind := range kinds {
		section := layout.Section(kind)
		words = append(words, "-u", "__start_"+section, "-u", "__stop_"+section)
	}
	return words
}
