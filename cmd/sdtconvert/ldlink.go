package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"sync"

	"sdtconvert/internal/filetype"
	"sdtconvert/internal/linkline"
	"sdtconvert/internal/rename"
)

// link is one run of the real linker.
type link struct {
	*linkFlags
	linker string   // the real one's path
	given  []string // its arguments as they came

	line    *linkline.Line
	inputs  []*linkInput // each file once, in the order of the line
	byArg   map[int]*linkInput
	needles [][]byte // without which a file has no stub
	temp    *tempFolder
	copies  map[string]string // of files, by where these are
	names   *rename.Names     // of copies

	stdout, stderr io.Writer

	mu      sync.Mutex  // of running, and of temp when a signal comes
	running *os.Process // the linker, while it runs
}

// prepare converts what holds probes. Where nothing does, the linker can be run as
// if nobody stood between.
func (l *link) prepare() error {
	args, err := linkline.Expand(l.given)
	if err != nil {
		return err
	}
	l.line = linkline.Parse(args)
	if !l.line.HasInputs() {
		return nil
	}
	l.needles = l.patch.Names.Needles()
	l.findInputs()
	if len(l.inputs) > 1 {
		collectLess()
	}
	parallel(len(l.inputs), l.jobs, func(i int) { l.scanInput(l.inputs[i]) })
	var errs []error
	var wanted []*linkInput
	for _, in := range l.inputs {
		if in.err != nil {
			errs = append(errs, in.err)
		}
		if in.probes {
			wanted = append(wanted, in)
		}
	}
	if len(errs) > 0 {
		reportAll(errs, l.stderr)
		return errTold
	}
	return l.convertInputs(wanted)
}

// findInputs lists the files that the line names.
func (l *link) findInputs() {
	l.byArg = map[int]*linkInput{}
	known := map[string]*linkInput{}
	for i := range l.line.Args {
		arg := &l.line.Args[i]
		if arg.Kind != linkline.Input || arg.Foreign {
			continue
		}
		in := known[arg.Value]
		if in == nil {
			in = &linkInput{path: arg.Value, file: l.inFolder(arg.Value)}
			known[arg.Value] = in
			l.inputs = append(l.inputs, in)
		}
		l.byArg[i] = in
	}
}

// inFolder is where a path leads that is given to the linker.
func (l *link) inFolder(path string) string {
	if l.line.Folder == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(l.line.Folder, path)
}

// convertInputs converts files, to copies or in place.
func (l *link) convertInputs(wanted []*linkInput) error {
	var files []string
	for _, in := range wanted {
		if in.typ == filetype.ELF {
			files = append(files, in.file)
		}
	}
	if len(files) == 0 {
		return nil
	}
	l.watch()
	c := &converter{settings: &l.settings}
	if !l.inPlace {
		if err := l.makeCopies(c, files); err != nil {
			return err
		}
	}
	failed := false
	pool(files, l.jobs, c.file, func(i int, r *result) {
		l.stderr.Write(r.stderr.Bytes())
		l.stderr.Write(r.stdout.Bytes()) // standard output is the linker's
		failed = failed || r.failed
	})
	if failed {
		return errTold
	}
	l.nameCopies(wanted)
	return nil
}

// makeCopies has what is converted go to the temporary folder.
func (l *link) makeCopies(c *converter, files []string) error {
	if err := l.makeTemp(); err != nil {
		return err
	}
	l.copies = map[string]string{}
	for _, file := range files {
		absolute, err := filepath.Abs(file)
		if err != nil {
			return err
		}
		place := l.temp.place(absolute)
		if err := l.temp.makeParent(place); err != nil {
			return err
		}
		l.copies[file] = place
	}
	c.place = func(file string) string { return l.copies[file] }
	return nil
}

// nameCopies finds out which copies there are: what mentions stubs in other places
// than calls is not converted.
func (l *link) nameCopies(wanted []*linkInput) {
	if l.temp == nil {
		return
	}
	l.names = rename.New(l.temp.path + string(filepath.Separator))
	for _, in := range wanted {
		place, ok := l.copies[in.file]
		if !ok {
			continue
		}
		if _, err := os.Lstat(place); errors.Is(err, os.ErrNotExist) {
			delete(l.copies, in.file)
			continue
		}
		l.names.Add(place, in.path)
	}
}

// words are the arguments of the linker, with the copies in them.
func (l *link) words() []string {
	args := append([]linkline.Arg(nil), l.line.Args...)
	for i := range args {
		if in := l.byArg[i]; in != nil {
			if place, ok := l.copies[in.file]; ok {
				args[i].Words = []string{place}
			}
		}
	}
	return linkline.Words(args)
}
