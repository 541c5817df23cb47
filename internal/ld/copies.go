package ld

import (
	"debug/elf"
	"errors"
	"os"
	"path/filepath"
	"sync"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/known"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/ld/rename"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
	"sdtconvert/patch"
)

// converted is what a conversion has made.
type converted struct {
	any     bool              // whether there was anything to convert
	copies  map[string]string // of inputs, by the paths that the linker is told; none of those in their place
	names   []renamed         // of the copies, and of generated code
	scripts map[string]string // copies of scripts that flags name, by their values
	parts   map[string]*part  // what the objects are to the link, by file
}

// files returns inputs, or their copies.
func (c converted) files(inputs []*linkInput) (files []string) {
	for _, in := range inputs {
		file := in.file
		if place, ok := c.copies[in.path]; ok {
			file = place
		}
		files = append(files, file)
	}
	return files
}

// renamed is a temporary file, and what reports call it.
type renamed struct{ file, instead string }

// renamedAs returns what reports call a temporary file that stands for a path, in the two
// ways in which linkers print paths: mold cleans them.
func renamedAs(place, path string) []renamed {
	return []renamed{{place, path}, {filepath.Clean(place), filepath.Clean(path)}}
}

// renames returns the names of temporary files, of which there is one at least.
func (s *session) renames(all []renamed) *rename.Names {
	names := rename.New(s.inTemp(""))
	for _, r := range all {
		names.Add(r.file, r.instead)
	}
	return names
}

// convertInputs converts inputs, to copies or in their place. all are those that mention
// probes.
func (l *link) convertInputs(ln *line.Line, wanted, all []*linkInput) (converted, error) {
	if len(wanted) == 0 {
		return converted{}, nil
	}
	jobs, places, err := l.apart(wanted)
	if err != nil {
		return converted{}, err
	}
	l.session.Watch()
	collector := &partCollector{options: l.Convert.Patch, parts: map[string]*part{}}
	o := l.conversion(len(jobs))
	o.Patch.ProbeSource = l.probeSource(all)
	if !ln.Relocatable {
		o.Planned = collector.add
	}
	c, failed := convert.New(o, l.session.files), false
	var warnings message.Tally
	parallel.InOrder(len(jobs), o.Jobs, func(i int) *convert.Result { return c.File(jobs[i].from, jobs[i].to) }, func(_ int, r *convert.Result) {
		r.Report(l.Stderr, &warnings) // standard output is the linker's
		failed = failed || r.Failed
	})
	warnings.Print(l.Stderr)
	if failed {
		return converted{}, errReported
	}
	done := converted{any: true, parts: collector.parts}
	done.copies, done.names = existing(wanted, places, o.Jobs)
	return done, nil
}

// conversion returns the options for so many files.
func (l *link) conversion(files int) convert.Options {
	o := l.Convert
	o.Files, o.Fresh, o.LinkConverts = files, true, true
	o.FollowThin = o.FollowThin || !l.InPlace // nothing is written there, and the linker follows
	return o
}

// job is a file to convert, and where to.
type job struct{ from, to string }

// apart decides which files are converted, and where to. In their place each file is
// converted once, by whatever paths it is named. Otherwise each path has a copy of its
// own, in places: mold reads an archive once for each path, and the others for each word.
func (l *link) apart(wanted []*linkInput) (jobs []job, places map[string]string, err error) {
	if l.InPlace {
		var files []string
		for _, in := range wanted {
			files = append(files, in.file)
		}
		files, err = input.Distinct(files)
		for _, file := range files {
			jobs = append(jobs, job{file, file})
		}
		return jobs, nil, err
	}
	var told []string
	for _, in := range wanted {
		told = append(told, in.path)
	}
	if places, err = l.session.makePlaces(told); err != nil {
		return nil, nil, err
	}
	for _, in := range wanted {
		jobs = append(jobs, job{in.file, places[in.path]})
	}
	return jobs, places, nil
}

// existing finds out which copies there are: what mentions stubs in other places than
// calls is not converted.
func existing(wanted []*linkInput, places map[string]string, jobs int) (copies map[string]string, names []renamed) {
	missing := make([]bool, len(wanted))
	parallel.Each(len(wanted), jobs, func(i int) {
		_, err := os.Lstat(places[wanted[i].path])
		missing[i] = errors.Is(err, os.ErrNotExist)
	})
	copies = map[string]string{}
	for i, in := range wanted {
		if place, ok := places[in.path]; ok && !missing[i] {
			copies[in.path] = place
			names = append(names, renamedAs(place, in.path)...)
		}
	}
	return copies, names
}

// partCollector collects the parts of objects that are about to be converted, from several
// goroutines.
type partCollector struct {
	options patch.Options
	mu      sync.Mutex
	parts   map[string]*part
}

// add adds an object. Of archives, the members that are not converted count too.
func (c *partCollector) add(obj *input.Object, plan *patch.Plan) error {
	if obj.Source.Member != nil {
		return nil
	}
	p := newPart(c.options)
	err := p.add(c.options, obj, plan.Scan)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parts[obj.Source.Name] = p
	return err
}

// probeSource returns what the inputs of a link say about probes, for notes: nil
// otherwise.
func (l *link) probeSource(inputs []*linkInput) patch.ProbeSource {
	if !l.Convert.Patch.MayHaveNotes() {
		return nil
	}
	var files []string
	for _, in := range inputs {
		if in.elf == elf.ET_DYN || in.names && in.late.Compiler == "" && (in.elf == elf.ET_REL || in.isArchive()) {
			files = append(files, in.file)
		}
	}
	return known.New(files, known.Options{ProbePrefix: l.Convert.Patch.ProbePrefix, Jobs: l.Convert.Jobs, FollowThin: true})
}
