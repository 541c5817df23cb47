package ld

import (
	"path/filepath"
	"strings"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/input"
	"sdtconvert/internal/paths"
)

// A library may be a short linker script, as libc.so of glibc and libncurses.so are. Each dynamic link reads one,
// so it is read here, too. Other scripts are left to the linker, which is supervised then.

// libraryScript is a linker script that has no other commands than OUTPUT_FORMAT, INPUT and GROUP.
type libraryScript struct {
	format string   // of OUTPUT_FORMAT, "" if it is not there
	inputs []string // paths, names, and -l with a name
}

// longestLibraryScript is in bytes.
const longestLibraryScript = 4 << 10

// readLibraryScript reads a script. ok is false for any other script or file.
func readLibraryScript(path string) (s libraryScript, ok bool) {
	f, err := input.Open(path) // a pipe can be read once
	if err != nil {
		return s, false
	}
	defer f.Close()
	if f.Size() > longestLibraryScript {
		return s, false
	}
	text := make([]byte, f.Size())
	if n, _ := f.ReadAt(text, 0); n < len(text) {
		return s, false
	}
	words := scriptWords(string(text))
	for len(words) > 1 && words[1] == "(" {
		command := words[0]
		values, rest := parenthesized(words[2:])
		switch command {
		case "OUTPUT_FORMAT":
			if len(values) > 0 {
				s.format = values[0]
			}
		case "INPUT", "GROUP":
			s.inputs = append(s.inputs, values...)
		default:
			return s, false
		}
		words = rest
	}
	return s, len(words) == 0
}

// scriptWords divides a script into names and parentheses. A comment that does not end is a word of its own.
func scriptWords(text string) []string {
	for {
		before, rest, begins := strings.Cut(text, "/*")
		_, after, ends := strings.Cut(rest, "*/")
		if !begins || !ends {
			break
		}
		text = before + " " + after
	}
	text = strings.NewReplacer("(", " ( ", ")", " ) ", ",", " ", ";", " ; ", `"`, ` " `).Replace(text)
	return strings.Fields(text)
}

// parenthesized returns the words up to the parenthesis that closes, those of AS_NEEDED(...) among them, and the
// words behind it.
func parenthesized(words []string) (values, rest []string) {
	depth := 1
	for i, word := range words {
		switch word {
		case "(":
			depth++
		case ")":
			if depth--; depth == 0 {
				return values, words[i+1:]
			}
		case "AS_NEEDED":
		default:
			values = append(values, word)
		}
	}
	return values, []string{"("} // it is not closed
}

// filesOfLibraryScript returns the files that the script of a library names, where they are found. isWhole is
// false if there may be more.
func filesOfLibraryScript(ln *commandLine, path string) (files []inputFile, isWhole bool) {
	s, isWhole := readLibraryScript(path)
	for _, name := range s.inputs {
		paths := pathsInScript(ln, path, name)
		isWhole = isWhole && len(paths) > 0
		for _, path := range paths {
			files = append(files, inputFile{path: path, name: path})
		}
	}
	return files, isWhole
}

// pathsInScript returns the files that a name in a script, or -l, may stand for. Linkers do not agree where they
// look first.
func pathsInScript(ln *commandLine, script, name string) (files []string) {
	candidates := []string{ln.inDirectory(name), paths.Beside(script, name)}
	if library, ok := strings.CutPrefix(name, "-l"); ok {
		candidates = ln.candidates(&lineArg{value: library})
	} else if !filepath.IsAbs(name) {
		candidates = append(candidates, ln.candidates(&lineArg{value: ":" + name})...)
	}
	for _, path := range candidates {
		if isRegular(path) {
			files = append(files, path)
		}
	}
	return files
}

// targetOfScript returns the target that the script of a library names.
func targetOfScript(path string) (target input.Target) {
	s, _ := readLibraryScript(path)
	if abi, ok := machines.OfFormat(s.format); ok {
		return input.Target{Class: abi.Class, Data: abi.Data, Machine: abi.Machine}
	}
	return target
}
