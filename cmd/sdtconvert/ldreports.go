package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
)

// rewriteReports has the files that tell what was linked name the inputs, and not
// their copies.
func (l *link) rewriteReports() error {
	for _, report := range l.line.Reports {
		file := l.line.InFolder(report.Path)
		info, err := os.Stat(file)
		if err == nil && info.IsDir() && !report.Makefile { // GNU ld: a folder for the map
			file = filepath.Join(file, filepath.Base(l.output())+".map")
			info, err = os.Stat(file)
		}
		if err != nil || !info.Mode().IsRegular() {
			continue // the linker knows why
		}
		if err := l.rewrite(file, report.Makefile); err != nil {
			return err
		}
	}
	return nil
}

func (l *link) output() string {
	if l.line.Output == "" {
		return "a.out"
	}
	return l.line.Output
}

// rewrite replaces names in a file, unless there are none. In a rule of make, some
// linkers write them as make reads them, and some as they are.
func (l *link) rewrite(file string, makefile bool) error {
	was, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	text := was
	if makefile {
		if l.added != nil {
			text = dropPrerequisite(text, l.added.file)
			text = dropPrerequisite(text, makefileName(l.added.file))
		}
		text = l.names.With(makefileName).Bytes(text)
	}
	if text = l.names.Bytes(text); bytes.Equal(text, was) {
		return nil
	}
	return l.program.files.New(file, text)
}

// makefileName writes a name as make reads it.
func makefileName(name string) string {
	return strings.NewReplacer(" ", `\ `, "#", `\#`, "$", "$$").Replace(name)
}

// dropPrerequisite takes a name out of a rule, and the empty rule of its own that
// lets make go on when the file is gone. Each linker has its own white space.
func dropPrerequisite(text []byte, name string) []byte {
	text = bytes.ReplaceAll(text, []byte("\n"+name+":\n\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\n"+name+":\n"), []byte("\n"))
	at := bytes.Index(text, []byte(" "+name))
	if at < 0 {
		return text
	}
	from, to := at, at+1+len(name)
	for from > 0 && strings.IndexByte(" \t\n\\", text[from-1]) >= 0 {
		from--
	}
	return append(text[:from:from], text[to:]...)
}
