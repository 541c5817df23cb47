package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/ld/rename"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
)

// link is one run of the real linker.
type link struct {
	*linkFlags
	*program
	linker string   // the real one's path
	given  []string // its arguments as they came

	line   *line.Line
	inputs []*linkInput          // each file once, in the order of the line
	known  map[string]*linkInput // by path
	byArg  map[int]*linkInput    // by the argument of the line
	abi    []byte                // of the first object; nil if nobody has asked

	needles  [][]byte // without which a file has no stub
	anyNames [][]byte // and without which it has to do with no probe
	temp     *tempFolder
	copies   map[string]string // of files, by where these are
	names    *rename.Names     // of copies
	added    *addition
	noted    sync.Map // *linkPart of objects that were converted, by file

	converted bool             // something was
	generated map[int][]string // what stands for arguments, of objects without code

	watched sync.Once

	mu      sync.Mutex  // of running and passed, and of temp when a signal comes
	running *os.Process // the linker, while it runs
	passed  os.Signal   // on to it, the last
}

// addition is an object that is added to the line.
type addition struct {
	file string
	at   int // the argument before which it goes
}

// prepare converts what holds probes. Where nothing does, the linker can be run as
// if nobody stood between.
func (l *link) prepare() error {
	args, err := line.Expand(l.given)
	if err != nil {
		return err
	}
	l.line = line.Parse(args)
	if !l.line.HasInputs() {
		return nil
	}
	l.follow = l.follow || !l.inPlace // nothing is written there, and the linker follows
	l.needles = l.patch.Names.Needles()
	l.anyNames = append(l.patch.Names.Needles(), []byte(l.patch.ProbePrefix))
	l.findInputs()
	l.scan()
	scripts, err := l.scriptsOf()
	if err != nil {
		return err
	}
	if l.inPlace {
		l.addScripted(scripts)
	}
	wanted, late, errs := l.choices()
	if len(errs) == 0 && !l.inPlace {
		errs = l.checkScripts(scripts, wanted)
	}
	if len(errs) > 0 {
		message.Error(l.Stderr, errors.Join(errs...))
		return errTold
	}
	if err := l.convertInputs(wanted); err != nil {
		return err
	}
	if err := l.generate(late); err != nil {
		return err
	}
	if l.line.Relocatable {
		return nil
	}
	return l.completeLink()
}

// choices are the inputs to convert, those whose code has to be generated first, and
// what neither can be done with.
func (l *link) choices() (wanted, late []*linkInput, errs []error) {
	for _, in := range l.inputs {
		switch {
		case in.err != nil:
			errs = append(errs, in.err)
		case !in.probes:
		case in.late.Compiler != "":
			late = append(late, in)
		case l.inPlace:
			wanted = append(wanted, in)
		case in.script != "":
			errs = append(errs, fmt.Errorf("%s: names %s, which holds probes, and the linker would read that and no copy; link with --in-place", in.script, in.path))
		case sameFile(in.file, l.line.InFolder(l.output())):
			errs = append(errs, fmt.Errorf("%s: is the output too; name another", in.path))
		default:
			wanted = append(wanted, in)
		}
	}
	return wanted, late, errs
}

// convertInputs converts files, to copies or in place.
func (l *link) convertInputs(wanted []*linkInput) error {
	if len(wanted) == 0 {
		return nil
	}
	files, err := l.apart(wanted)
	if err != nil {
		return err
	}
	l.watch()
	o := l.conversion(len(files))
	o.Fresh, o.KeepTime = true, l.inPlace
	if !l.line.Relocatable {
		o.Planned = l.notePlan
	}
	c := convert.New(o, l.program.files)
	work := func(i int) *convert.Result {
		target := files[i]
		if !l.inPlace {
			target = l.copies[target]
		}
		return c.File(files[i], target)
	}
	failed := false
	l.converted = true
	parallel.InOrder(len(files), l.jobs, work, func(_ int, r *convert.Result) {
		for _, text := range [][]byte{r.Messages.Bytes(), r.Lines.Bytes()} { // standard output is the linker's
			if len(text) > 0 {
				l.Stderr.Write(text)
			}
		}
		failed = failed || r.Failed
	})
	if failed {
		return errTold
	}
	l.nameCopies(wanted)
	return nil
}

// apart are the files of inputs, each once, by whatever path it is named.
func (l *link) apart(wanted []*linkInput) ([]string, error) {
	files := make([]string, len(wanted))
	for i, in := range wanted {
		files[i] = in.file
	}
	if l.inPlace {
		return input.Distinct(files)
	}
	if err := l.makePlaces(files); err != nil {
		return nil, err
	}
	taken := map[string]bool{}
	return slices.DeleteFunc(files, func(file string) bool {
		place := l.copies[file]
		known := taken[place]
		taken[place] = true
		return known
	}), nil
}

// needTemp makes the temporary folder unless it is there.
func (l *link) needTemp() error {
	if l.temp != nil {
		return nil
	}
	l.watch()
	if err := l.makeTemp(); err != nil {
		return err
	}
	l.names = rename.New(l.temp.path + string(filepath.Separator))
	return nil
}

// makePlaces decides where in the temporary folder the copies are.
func (l *link) makePlaces(files []string) error {
	if err := l.needTemp(); err != nil {
		return err
	}
	if l.copies == nil {
		l.copies = map[string]string{}
	}
	var places []string
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
		places = append(places, place)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.temp.files = append(l.temp.files, places...)
	return nil
}

// nameCopies finds out which copies there are: what mentions stubs in other places
// than calls is not converted.
func (l *link) nameCopies(wanted []*linkInput) {
	missing := make([]bool, len(wanted))
	parallel.Each(len(wanted), l.jobs, func(i int) {
		_, err := os.Lstat(l.copies[wanted[i].file])
		missing[i] = errors.Is(err, os.ErrNotExist)
	})
	for i, in := range wanted {
		place, ok := l.copies[in.file]
		switch {
		case !ok:
		case missing[i]:
			delete(l.copies, in.file)
		default:
			l.names.Add(place, in.path)
		}
	}
}

// words are the arguments of the linker, with the copies in them.
func (l *link) words() []string {
	var words []string
	for i := range l.line.Args {
		if l.added != nil && l.added.at == i {
			words = append(words, l.added.file)
		}
		if files, ok := l.generated[i]; ok {
			words = append(words, files...)
			continue
		}
		if in := l.byArg[i]; in != nil {
			if place, ok := l.copies[in.file]; ok {
				words = append(words, place)
				continue
			}
		}
		words = append(words, l.line.Args[i].Words...)
	}
	if l.added != nil && l.added.at == len(l.line.Args) {
		words = append(words, l.added.file)
	}
	return words
}
