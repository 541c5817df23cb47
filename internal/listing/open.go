package listing

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"sdtconvert/image"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/locate"
)

// errNoProbes is of what holds no records.
var errNoProbes = errors.New("holds no records of probes")

// File lists an object or a linked image, or the members of an archive that hold
// records. done is called with each listing, also with one of nothing but an error.
func File(path string, o *Options, done func(*Listing)) {
	fail := func(err error) {
		out := newListing(path)
		out.fail(err)
		done(out)
	}
	in, err := input.Open(path)
	if err != nil {
		fail(err)
		return
	}
	defer in.Close()
	found := false
	err = in.Each(input.Options{FollowThin: o.FollowThin}, func(src *input.Source) error {
		out := newListing(src.Name)
		err := o.source(src, out)
		if src.Member != nil && errors.Is(err, errNoProbes) {
			return nil
		}
		if err != nil {
			out.fail(err)
		}
		found = true
		done(out)
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("%s: %w", path, errNoProbes)
	}
	if err != nil {
		fail(err)
	}
}

// source lists a file or a member of an archive.
func (o *Options) source(src *input.Source, out *Listing) error {
	if typ, err := src.Type(); err == nil && typ != filetype.ELF && src.Member != nil {
		return errNoProbes
	}
	code, err := locate.Open(src, o.Options)
	if err != nil {
		return err
	}
	defer code.Close()
	return o.code(code, code.Image, out)
}

// A process that has just started has records that its loader has not relocated yet, so they lead
// to no code.
const (
	startAttempts = 10
	startPause    = 20 * time.Millisecond
)

// Process lists all that is loaded in a process and holds records. done is called
// with the listing of each module; an error is of the process. If a record leads nowhere, the
// process is read again a little later.
func Process(pid int, o *Options, done func(*Listing)) error {
	for attempt := 1; ; attempt++ {
		var warnings []error
		once := *o
		once.Warn = func(err error) { warnings = append(warnings, err) }
		listings, err := once.process(image.OpenProcess(pid))
		isBroken := func(l *Listing) bool { return len(l.Errors) > 0 }
		if attempt < startAttempts && slices.ContainsFunc(listings, isBroken) {
			time.Sleep(startPause)
			continue
		}
		for _, err := range warnings {
			o.Warn(err)
		}
		for _, listing := range listings {
			done(listing)
		}
		return err
	}
}

// Core lists what a process had loaded that has left a core file. done is called with the listing of each
// module; an error is of the core file.
func Core(path string, o *Options, done func(*Listing)) error {
	listings, err := o.process(image.OpenCore(path))
	for _, listing := range listings {
		done(listing)
	}
	return err
}

// process lists the modules of a process that was opened, and closes it.
func (o *Options) process(process *image.Process, err error) (listings []*Listing, _ error) {
	if err != nil {
		return nil, err
	}
	defer process.Close()
	for _, m := range process.Modules {
		if m.Note != "" {
			o.Warn(fmt.Errorf("%s: %s: %s", process.Name(), m.Path, m.Note))
		}
		if m.Image == nil {
			continue
		}
		out := newListing(m.Path)
		code := locate.NewModuleCode(m, o.Options)
		err := o.code(code, moduleMemory{process, m}, out)
		code.Close()
		if errors.Is(err, errNoProbes) {
			continue
		}
		if err != nil {
			out.fail(err)
		}
		listings = append(listings, out)
	}
	if len(listings) == 0 {
		return nil, fmt.Errorf("%s: %w", process.Name(), errNoProbes)
	}
	return listings, nil
}

// moduleMemory is the memory of a process, with the arrays of one module.
type moduleMemory struct {
	*image.Process
	module *image.Module
}

// Arrays implements image.Image.
func (v moduleMemory) Arrays(name string) ([]image.Range, error) {
	return v.ModuleArrays(v.module, name)
}
