package ld

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"

	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/paths"
	"sdtconvert/internal/replace"
)

// output is the file that a linker writes.
func output(ln *line.Line) string {
	if ln.Output == "" {
		return "a.out"
	}
	return ln.Output
}

// rewriteReports has the files that tell what was linked name the inputs, and not
// their copies.
func rewriteReports(files *replace.Writer, link *prepared) error {
	for _, report := range link.Reports {
		file := link.InFolder(report.Path)
		info, err := os.Stat(file)
		if err == nil && info.IsDir() && !report.Makefile { // GNU ld: a folder for the map
			file = paths.Join(file, filepath.Base(output(link.Line))+".map")
			info, err = os.Stat(file)
		}
		if err != nil || !info.Mode().IsRegular() {
			continue // the linker knows why
		}
		if err := link.rewrite(files, file, report.Makefile); err != nil {
			return err
		}
	}
	return nil
}

// rewrite replaces names in a file, unless there are none.
func (r *prepared) rewrite(files *replace.Writer, file string, makefile bool) error {
	f, err := input.Open(file)
	if err != nil {
		return err
	}
	was, err := head(f, math.MaxInt64)
	f.Close()
	if err != nil {
		return err
	}
	text := was
	if makefile {
		text = r.rule(text)
	}
	if text = r.names.Bytes(text); bytes.Equal(text, was) {
		return nil
	}
	return files.New(file, text)
}

// rule replaces names in a rule of make. Some linkers write them as make reads them,
// and some as they are.
func (r *prepared) rule(text []byte) []byte {
	if r.addition != nil {
		text = dropPrerequisite(text, r.addition.file)
		text = dropPrerequisite(text, makefileName(r.addition.file))
	}
	return r.names.With(makefileName).Bytes(text)
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
