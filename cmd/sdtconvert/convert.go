package main

import (
	"os"
	"path/filepath"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/known"
	"sdtconvert/internal/paths"
)

// convert is the command that rewrites objects.
func (p *program) convert(args []string) (bool, error) {
	s, err := convertFlags().parse(args)
	if err != nil {
		return false, err
	}
	if err := checkOutputs(s); err != nil {
		return false, err
	}
	o := s.conversion(len(s.files))
	if o.Patch.Noted() {
		o.Patch.Known = known.Read(s.files, known.Options{ProbePrefix: o.Patch.ProbePrefix, Jobs: s.jobs, FollowThin: s.follow})
	}
	c := convert.New(o, p.files)
	return p.runAll(s, func(file string) *result {
		r := c.File(file, s.target(file))
		return &result{lines: r.Lines.Bytes(), messages: r.Messages.Bytes(), warnings: r.Warnings, failed: r.Failed, objects: r.Objects}
	})
}

// conversion are the options of a conversion of so many files.
func (s *settings) conversion(files int) convert.Options {
	return convert.Options{
		Patch: s.patch, Jobs: s.jobs, Files: files,
		FollowThin: s.follow, DryRun: s.dryRun, Verbose: s.verbose, Manifest: s.json,
	}
}

// target is where the result of a file goes.
func (s *settings) target(file string) string {
	switch {
	case s.output != "":
		return s.output
	case s.outputDir != "":
		return paths.Join(s.outputDir, filepath.Base(file))
	}
	return file
}

// checkOutputs makes sure that no two files have one output.
func checkOutputs(s *settings) error {
	if s.outputDir == "" {
		return nil
	}
	from := make(map[string]string)
	files, err := input.Distinct(s.files)
	if err != nil {
		return err
	}
	for _, file := range files {
		base := filepath.Base(file)
		if other, taken := from[base]; taken {
			return usagef("%s and %s would both be written to %s", other, file, paths.Join(s.outputDir, base))
		}
		from[base] = file
	}
	if s.dryRun {
		return nil
	}
	return os.MkdirAll(s.outputDir, 0o777)
}
