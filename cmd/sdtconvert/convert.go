package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/paths"
	"sdtconvert/internal/probedefs"
)

// convertCommand rewrites objects.
var convertCommand = &command{
	name: "convert", synopsis: "[convert] [flags] FILE...", brief: "convert objects, in place",
	usage: []string{"sdtconvert [convert] [flags] FILE...", "sdtconvert --version | -V"},
	text: `Replaces each call of a stub __dtrace_probe_<id> or __dtrace_isenabled_<id> in
relocatable objects with a NOP, and records the sites in a section that the final
link collects. Run it on objects after compiling and before linking. The members of
an archive are converted inside it, and those of a thin archive as files of their
own. A file that is converted in place keeps its time of modification.`,
	groups: []group{
		{title: "Output", manual: "convert output", options: []*option{
			outputOption, outputDirOption, dryRunOption, verboseOption, jsonOption, jobsOption,
		}},
		{title: "What is converted", manual: "convert names", options: convertedOptions},
		{title: "Archives", manual: "convert archives", options: []*option{followOption}},
		{title: "What is recorded", manual: "convert records", options: recordedOptions},
	},
	exit: "0 success, 1 something was wrong with a file (it is unchanged, and the others are done), 2 the command line is wrong.",
	define: func(p *program, f *pflag.FlagSet) runner {
		flags := convertFlags(f)
		return func([]string) (bool, error) { return p.convert(flags) }
	},
}

// convert rewrites objects.
func (p *program) convert(f *flags) (bool, error) {
	s, err := f.validate()
	if err != nil {
		return false, err
	}
	if err := checkOutputs(s); err != nil {
		return false, err
	}
	o := s.conversion(len(s.files))
	o.SuggestOutput = true
	if o.Patch.MayHaveNotes() {
		o.Patch.ProbeSource = probedefs.New(s.files, probedefs.Options{ProbePrefix: o.Patch.ProbePrefix, Jobs: s.jobs, FollowThin: s.follow})
	}
	c := convert.New(o, p.files)
	failed, err := p.runAll(s, func(file string) *result {
		r := c.File(file, s.target(file))
		return &result{lines: r.Lines.Bytes(), messages: r.Messages.Bytes(), warnings: r.Warnings, failed: r.Failed, objects: r.Objects}
	})
	if c.MixesTargets() {
		message.Warning(p.Stderr, errors.New("objects for a Linux kernel got no notes, and others, which show no sign of a kernel, did; if all are for one, convert with --layout pairs"))
	}
	return failed, err
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
