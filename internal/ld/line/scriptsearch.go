package line

import (
	"os"
	"path/filepath"
	"strings"

	"sdtconvert/internal/paths"
)

// ScriptPlace is from where the names in a script are looked up.
type ScriptPlace struct {
	// Script, as the linker has opened it, decides whether absolute names are below the
	// system root.
	Script string
	// First is the directory that its relative names are looked up in first, with a slash at
	// the end, or "". Which it is depends on the linker.
	First string
	State // of what leads to it: libraries may be archives only
}

// Place is from where names are looked up in a script that a flag names, or that is an
// input, or that another one includes. As was seen:
//
//   - GNU ld looks for inputs next to a script that is an input itself, whatever that
//     includes, and not next to one that -T names.
//   - gold does next to a script of either kind, and lld next to that which has the name.
//   - mold 1.10 does not, and mold 2.37 does, with ".." removed as text.
func (d Dialect) Place(script string, flag bool, state State) ScriptPlace {
	place := ScriptPlace{Script: script, State: state}
	if d == GNU && flag {
		return place
	}
	place.First = script[:strings.LastIndexByte(script, '/')+1]
	switch {
	case d == GNU && place.First == "":
		place.First = "./" // which it shows
	case d == GNU:
		place.First = strings.TrimRight(place.First, "/") + "/" // it shows one
	}
	return place
}

// Included is from where names are looked up in a script that one includes. As was seen, lld
// has absolute names below the system root if the including script is there.
func (d Dialect) Included(by ScriptPlace, script string) ScriptPlace {
	place := d.Place(script, false, by.State)
	switch d {
	case GNU:
		place.First = by.First
	case LLD:
		place.Script = by.Script
	}
	return place
}

// ScriptInput is a file that a linker script names as an input.
type ScriptInput struct {
	Path string // as the linker finds it
	File string // where it is
	// Other is another path that may be meant, or "": this depends on the version of the
	// linker, or on what it does not tell.
	Other string
	// Maybe says that some versions of the linker do not look there.
	Maybe bool
}

// ScriptInput finds the file of a name. It has no path if there is none.
func (l *Line) ScriptInput(d Dialect, place ScriptPlace, word Name) (found ScriptInput) {
	name := word.Text
	if library, ok := strings.CutPrefix(name, "-l"); ok && d.NamesLibrary(word) {
		if d == Gold && strings.HasPrefix(library, ":") {
			return ScriptInput{} // it knows that on its line only
		}
		for _, file := range l.Candidates(&Arg{Kind: Library, Value: library, State: place.State}) {
			return ScriptInput{Path: file, File: file}
		}
		return ScriptInput{}
	}
	files, maybe := l.scriptInputs(d, place, name)
	found, info := l.firstFile(files)
	other, otherInfo := l.firstFile(maybe)
	switch {
	case info == nil:
		other.Maybe = true
		return other
	case otherInfo != nil && !os.SameFile(info, otherInfo):
		found.Other = other.Path
	}
	return found
}

// NamesLibrary reports whether a word of a script is a -l. In quotes it is a file to GNU ld
// and gold.
func (d Dialect) NamesLibrary(word Name) bool {
	return strings.HasPrefix(word.Text, "-l") && !(word.Quoted && (d == GNU || d == Gold))
}

// firstFile returns the first path that leads to a file; info is nil if none does.
func (l *Line) firstFile(paths []string) (found ScriptInput, info os.FileInfo) {
	for _, path := range paths {
		file := l.InDirectory(path)
		if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() {
			return ScriptInput{Path: path, File: file}, info
		}
	}
	return ScriptInput{}, nil
}

// scriptInputs returns the files that a name may be of, the first of which that is there
// is meant, but for some linkers one of maybe, if it is there.
func (l *Line) scriptInputs(d Dialect, place ScriptPlace, name string) (files, maybe []string) {
	rooted := l.inSysroot(name)
	switch {
	case rooted != name:
		return []string{rooted}, nil
	case filepath.IsAbs(name):
		opened := l.AbsoluteInput(place, name)
		if d == Gold && opened != name { // depends on how it has found the script
			return []string{opened}, []string{name}
		}
		return []string{opened}, nil
	}
	switch beside := place.First + name; {
	case d == Mold && place.First != "":
		files, maybe = []string{name}, []string{filepath.Clean(beside)}
	case d == Gold:
		files = []string{beside}
	case place.First != "":
		files = []string{beside, name}
	default:
		files = []string{name}
	}
	if d == Gold && strings.Contains(name, "/") {
		return files, maybe // it looks for names in lists of what is in directories
	}
	for _, directory := range l.searched(place.At) {
		files = append(files, directory+"/"+name)
	}
	return files, maybe
}

// AbsoluteInput returns the path that the linker opens for an absolute name in a script. If
// the script is in the system root, the path is too.
func (l *Line) AbsoluteInput(place ScriptPlace, name string) string {
	if l.underSysroot(place.Script) {
		return l.Sysroot + name
	}
	return name
}

// ScriptFile finds a script that an argument, or another script that one leads to, names: as
// the linker opens it, and where it is. Both are "" if there is none.
func (l *Line) ScriptFile(name string, at int) (path, file string) {
	files := []string{l.inSysroot(name)}
	if !filepath.IsAbs(files[0]) {
		for _, directory := range l.searched(at) {
			files = append(files, directory+"/"+name)
		}
	}
	for _, path := range files {
		if info, err := os.Stat(l.InDirectory(path)); err == nil && info.Mode().IsRegular() {
			return path, l.InDirectory(path)
		}
	}
	return "", ""
}

// underSysroot reports whether a script is in the system root, where absolute names
// begin.
func (l *Line) underSysroot(script string) bool {
	if l.Sysroot == "" {
		return false
	}
	root, err := os.Stat(l.InDirectory(l.Sysroot))
	if err != nil {
		return false
	}
	file, err := paths.Real(l.InDirectory(script))
	if err != nil {
		return false
	}
	for directory := paths.Directory(file); ; directory = paths.Directory(directory) {
		if info, err := os.Stat(directory); err == nil && os.SameFile(info, root) {
			return true
		}
		if directory == paths.Directory(directory) {
			return false
		}
	}
}
