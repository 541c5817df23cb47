package ld

import (
	"errors"
	"os"
	"slices"
	"sync"

	"sdtconvert/internal/emit/stubs"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/ld/rename"
	"sdtconvert/internal/parallel"
	"sdtconvert/patch"
)

// converted is what a conversion has made.
type converted struct {
	any    bool              // whether there was anything to convert
	copies map[string]string // of files, by where these are; none of those in their place
	names  []renamed         // of the copies
	parts  map[string]*part  // what the objects are to the link, by file
}

// renamed is a temporary file, and what reports call it.
type renamed struct{ file, instead string }

// renames are the names of temporary files, of which there is one at least.
func (s *session) renames(all []renamed) *rename.Names {
	names := rename.New(s.inTemp(""))
	for _, r := range all {
		names.Add(r.file, r.instead)
	}
	return names
}

// convert converts inputs, to copies or in their place.
func (l *link) convert(ln *line.Line, wanted []*linkInput) (converted, error) {
	if len(wanted) == 0 {
		return converted{}, nil
	}
	files, places, err := l.apart(wanted)
	if err != nil {
		return converted{}, err
	}
	l.session.watch()
	notes := &notes{parts: map[string]*part{}}
	o := Conversion{
		Patch: l.Patch, Jobs: l.Jobs, Files: len(files), Verbose: l.Verbose, KeepTime: l.InPlace, Fresh: true, Writer: l.session.files,
		FollowThin: l.FollowThin || !l.InPlace, // nothing is written there, and the linker follows
	}
	if !ln.Relocatable {
		o.Planned = func(obj *input.Object, plan *patch.Plan) error { return notes.add(l.Patch, obj, plan) }
	}
	convert, failed := l.Converter(o), false
	parallel.InOrder(len(files), l.Jobs, func(i int) *Result {
		if l.InPlace {
			return convert(files[i], files[i])
		}
		return convert(files[i], places[files[i]])
	}, func(_ int, r *Result) {
		for _, text := range [][]byte{r.Messages, r.Lines} { // standard output is the linker's
			if len(text) > 0 {
				l.Stderr.Write(text)
			}
		}
		failed = failed || r.Failed
	})
	if failed {
		return converted{}, errTold
	}
	done := converted{any: true, parts: notes.parts}
	done.copies, done.names = existing(wanted, places, l.Jobs)
	return done, nil
}

// apart are the files of inputs, each once, by whatever path it is named, and the
// places of the copies that there are to be of them.
func (l *link) apart(wanted []*linkInput) (files []string, places map[string]string, err error) {
	for _, in := range wanted {
		files = append(files, in.file)
	}
	if l.InPlace {
		files, err = input.Distinct(files)
		return files, nil, err
	}
	if places, err = l.session.makePlaces(files); err != nil {
		return nil, nil, err
	}
	taken := map[string]bool{}
	return slices.DeleteFunc(files, func(file string) bool {
		place := places[file]
		known := taken[place]
		taken[place] = true
		return known
	}), places, nil
}

// existing finds out which copies there are: what mentions stubs in other places than
// calls is not converted.
func existing(wanted []*linkInput, places map[string]string, jobs int) (copies map[string]string, names []renamed) {
	missing := make([]bool, len(wanted))
	parallel.Each(len(wanted), jobs, func(i int) {
		_, err := os.Lstat(places[wanted[i].file])
		missing[i] = errors.Is(err, os.ErrNotExist)
	})
	copies = map[string]string{}
	for i, in := range wanted {
		if place, ok := places[in.file]; ok && !missing[i] {
			copies[in.file] = place
			names = append(names, renamed{place, in.path})
		}
	}
	return copies, names
}

// notes are taken by several goroutines of objects that are about to be converted.
type notes struct {
	mu    sync.Mutex
	parts map[string]*part
}

// add notes an object. Of archives, the members that are not converted count too.
func (n *notes) add(o patch.Options, obj *input.Object, plan *patch.Plan) error {
	if obj.Source.Member != nil {
		return nil
	}
	p := &part{need: stubs.New(stubOptions(o))}
	err := p.add(o, obj.Object, plan.Scan)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.parts[obj.Source.Name] = p
	return err
}
