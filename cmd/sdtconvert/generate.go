package main

import (
	"cmp"
	"fmt"
	"os"

	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
)

// The commands stubs and sites make one file of many objects, which they leave alone.

// validateGenerated checks a command line of theirs that was parsed, and completes what it says.
func (f *flags) validateGenerated() (err error) {
	f.files = f.Args()
	if err := cmp.Or(f.checkNames(), f.parseLayout()); err != nil {
		return err
	}
	f.files, err = input.Distinct(f.files)
	return err
}

// eachObject opens the objects, and perhaps shared libraries, one after the other,
// and reports the errors of all. Files that are neither and hold no probes are passed
// over.
func (p *program) eachObject(f *flags, shared bool, work func(o *input.Object) error) (failed bool) {
	link := &input.Link{Options: input.Options{FollowThin: f.follow}, Names: f.patch.Names, Shared: shared}
	for _, file := range f.files {
		link.Each(file, work, func(err error) {
			failed = true
			message.Error(p.Stderr, err)
		})
	}
	return failed
}

// isOutput reports whether a file is what will be written.
func (f *flags) isOutput(src *input.Source) bool {
	info, err := os.Stat(f.output)
	return f.output != "" && err == nil && os.SameFile(info, src.File.Info)
}

// errIsOutput returns the error for an input that is the output.
func errIsOutput(name string) error {
	return fmt.Errorf("%s: is the output as well, and would be lost", name)
}

// writeOutput writes what was made.
func (p *program) writeOutput(f *flags, data []byte) error {
	if f.output == "" {
		_, err := p.Stdout.Write(data)
		return err
	}
	return p.files.New(f.output, data)
}
