package main

import (
	"cmp"
	"errors"
	"os"
	"path/filepath"

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
		{title: "Output", options: []*option{
			outputOption, outputDirOption, dryRunOption, verboseOption, jsonOption, jobsOption,
		}},
		{title: "What is converted", options: convertedOptions},
		{title: "Archives", options: []*option{followOption}},
		{title: "What is recorded", options: recordedOptions},
	},
	exit: "0 success, 1 something was wrong with a file (it is unchanged, and the others are done), 2 the command line is wrong.",
	new:  func() invocation { return &convertFlags{} },
}

// convertFlags are the flags of convert.
type convertFlags struct {
	conversionFlags
	output, outputDir     string
	dryRun, verbose, json bool
	jobs                  int
}

func (f *convertFlags) bindFlags(s *flagSet) {
	f.conversionFlags.bindFlags(s)
	f.jobs = defaultJobs()
	s.bind("output", &f.output)
	s.bind("output-dir", &f.outputDir)
	s.bind("dry-run", &f.dryRun)
	s.bind("verbose", &f.verbose)
	s.bind("json", &f.json)
	s.bind("jobs", &f.jobs)
}

// run rewrites objects.
func (f *convertFlags) run(p *program, _ []string) (bool, error) {
	if err := f.validate(); err != nil {
		return false, err
	}
	if err := f.checkOutputs(); err != nil {
		return false, err
	}
	o := convert.Options{
		Patch: f.patch, Jobs: f.jobs, Files: len(f.files),
		FollowThin: f.follow, DryRun: f.dryRun, Verbose: f.verbose, Manifest: f.json, SuggestOutput: true,
	}
	o.Patch.ProbeSource = probedefs.New(f.files, probedefs.Options{ProbePrefix: o.Patch.ProbePrefix, Jobs: f.jobs, FollowThin: f.follow})
	c := convert.New(o, p.files)
	failed, err := p.runAll(f.files, f.jobs, f.json, func(file string) *convert.Result { return c.File(file, f.target(file)) })
	if c.MixesTargets() {
		message.Warning(p.Stderr, errors.New("objects for a Linux kernel got no notes, and others, which show no sign of a kernel, did; if all are for one, convert with --layout pairs"))
	}
	return failed, err
}

// validate checks a command line that was parsed, and completes what it says.
func (f *convertFlags) validate() error {
	if err := cmp.Or(f.conversionFlags.validate(), f.set.checkOutput(f.output), checkJobs(f.jobs)); err != nil {
		return err
	}
	switch {
	case f.set.Changed("output-dir") && f.outputDir == "":
		return usagef("the output directory has no name")
	case f.output != "" && f.outputDir != "":
		return usagef("-o and --output-dir exclude each other")
	case f.output != "" && len(f.files) > 1:
		return usagef("-o takes one file, and %d are given; use --output-dir", len(f.files))
	case f.json && f.verbose:
		return usagef("--json and -v exclude each other")
	}
	return nil
}

// target is where the result of a file goes.
func (f *convertFlags) target(file string) string {
	switch {
	case f.output != "":
		return f.output
	case f.outputDir != "":
		return paths.Join(f.outputDir, filepath.Base(file))
	}
	return file
}

// checkOutputs makes sure that no two files have one output.
func (f *convertFlags) checkOutputs() error {
	if f.outputDir == "" {
		return nil
	}
	from := make(map[string]string)
	files, err := input.Distinct(f.files)
	if err != nil {
		return err
	}
	for _, file := range files {
		base := filepath.Base(file)
		if first, taken := from[base]; taken {
			return usagef("%s and %s would both be written to %s", first, file, paths.Join(f.outputDir, base))
		}
		from[base] = file
	}
	if f.dryRun {
		return nil
	}
	return os.MkdirAll(f.outputDir, 0o777)
}
