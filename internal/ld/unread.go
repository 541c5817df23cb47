package ld

import (
	"fmt"
	"os"
	"strings"

	"sdtconvert/internal/ld/line"
)

// Flags of which the linker reads files that hold probes, and of which it would not read copies.

// checkJustSymbols refuses archives and scripts with probes of which --just-symbols asks for
// symbols alone: GNU ld and gold link the objects. Of an object they take its symbols.
func (s *scanner) checkJustSymbols() error {
	for i := range s.line.Args {
		arg := &s.line.Args[i]
		if arg.Name != "just-symbols" {
			continue
		}
		in := s.input(named{path: arg.Value, file: s.line.InDirectory(arg.Value)})
		probed := in.isArchive() && in.probes
		for _, file := range s.reader.scripted(in.text) {
			probed = probed || s.input(file).probes
		}
		if probed {
			return fmt.Errorf("%s: the linker links objects of what --just-symbols names, and some hold probes; name them as inputs", in.path)
		}
	}
	return nil
}

// checkRepeated refuses objects with probes that -l names twice, for mold: version 2.37 links them
// once, and 1.10 twice. Archives are read once by both.
func (s *scanner) checkRepeated(byArg map[int]*linkInput, copies map[string]string) error {
	for i := range s.line.Args {
		if in := byArg[i]; in != nil && !in.isArchive() && copies[in.path] != "" && s.line.Repeats(i) {
			return fmt.Errorf("%s: -l names it twice, which some versions of mold link twice and others once, and it holds probes; name it once", in.path)
		}
	}
	return nil
}

// checkRemaps refuses a link with --remap-inputs that holds probes: the linker compares names
// with those of its inputs, and copies have others. replaced is whether there will be copies.
func (s *scanner) checkRemaps(replaced bool) error {
	for i := range s.line.Args {
		arg := &s.line.Args[i]
		probed := replaced
		for _, name := range remapped(s.line, arg) {
			in := s.input(named{path: name, file: s.line.InDirectory(name)})
			probed = probed || in.probes || in.err != nil
		}
		if probed && (arg.Name == "remap-inputs" || arg.Name == "remap-inputs-file") {
			return fmt.Errorf("--%s: the link holds probes, and copies of inputs have other names than it looks for; name the files that are to be read in the line", arg.Name)
		}
	}
	return nil
}

// remapped returns the files that an argument has the linker read in the place of others.
func remapped(ln *line.Line, arg *line.Arg) (names []string) {
	var rules []string
	switch arg.Name {
	case "remap-inputs":
		rules = []string{arg.Value}
	case "remap-inputs-file":
		text, _ := os.ReadFile(ln.InDirectory(arg.Value)) // the linker knows why not
		rules = strings.Split(string(text), "\n")
	}
	for _, rule := range rules {
		at := strings.IndexAny(rule, "= \t") // lld has the former, GNU ld both in files
		if name := strings.TrimLeft(rule[at+1:], "= \t"); at >= 0 && name != "" {
			names = append(names, strings.TrimRight(name, " \t\r"))
		}
	}
	return names
}
