package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strings"

	"sdtconvert/internal/check"
	"sdtconvert/internal/check/report"
	"sdtconvert/internal/input"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/message"
	"sdtconvert/linkerset"
)

// The flags of check that no other command has.
var (
	requireOption = &option{name: "require", value: "PROBE",
		help: "a site has to have this probe, provider:module:function:name as for list; may be repeated",
		manual: `A site has to have this probe, which is described as for *list*.
May be repeated.`}
	requireFileOption = &option{head: "    --require @FILE",
		help: "the same for each probe of FILE, one a line; a # begins a comment",
		manual: "The same for each probe that {file} lists, one a line.\n" +
			"A `#` begins a comment.\n" +
			"After this flag, and after `--require=`, {file} is not a response file."}
	requireNotesOption = &option{name: "require-notes",
		help:   "each recorded site of a probe has to have a note, as convert --stapsdt makes it",
		manual: `Each recorded site of a probe call has to have a note, as *convert* --stapsdt makes it.`}
	manifestOption = &option{name: "manifest", value: "FILE", complete: completeFile,
		help: "what convert --json printed: all of these sites have to be in the image, with their notes, unless the linker dropped their functions; may be repeated",
		manual: `Compare the images with what *convert* --json printed: all of these sites have to be
there, and the notes of those that were converted with --stapsdt.
Those whose functions are not there, or of which the linker has kept another
copy, are notes.
May be repeated.`}
	allowOption = &option{name: "allow", value: "RULE",
		help: "do not apply this rule; may be repeated",
		manual: `Do not apply this rule.
May be repeated.`}
	baselineOption = &option{name: "baseline", value: "FILE", complete: completeFile,
		help:   "findings in FILE are known, and do not count as errors",
		manual: `Do not count the findings that this file has.`}
	writeBaselineOption = &option{name: "write-baseline", value: "FILE", complete: completeFile,
		help:   "write all errors to FILE, and do not fail because of them",
		manual: `Write all errors to this file, and do not fail because of them.`}
	formatOption = &option{name: "format", value: "FORMAT",
		help:    "text (default), json, sarif (2.1.0), or github, for annotations of the lines",
		manual:  `Print *text*, *json*, *sarif*, which is SARIF 2.1.0, or *github*, annotations of source lines.`,
		choices: choicesOf(report.Names())}
)

// checkCommand finds what is wrong with the probes of a build.
var checkCommand = &command{
	name: "check", synopsis: "check [flags] FILE...", brief: "find what is wrong with the probes of objects, and of what was linked",
	usage: []string{"sdtconvert check [flags] FILE..."},
	text: `Finds what is wrong with the probes of a build: of its converted objects, which
have to be all those of one link, of programs, libraries and kernel modules, and of
these in comparison with what was converted. A site has a record, or a note alone,
like those of provider files.`,
	groups: []group{
		{title: "What is required", manual: "check", options: []*option{
			requireOption, requireFileOption, requireNotesOption, manifestOption, allowOption, baselineOption, writeBaselineOption,
		}},
		{title: "What is printed", manual: "check", options: []*option{formatOption}},
		{title: "What is searched for", manual: "check", asConvert: []*option{
			prefixOption, enabledPrefixOption, symbolOption, sectionOption, probePrefixOption, followOption,
		}},
	},
	after: rulesHelp(),
	exit:  "0 no error was found, 1 an error was found, 2 the command line is wrong, 3 a file could not be read, whatever was found in others.",
	run:   (*program).check,
}

// rulesHelp lists the rules of check.
func rulesHelp() string {
	var b strings.Builder
	b.WriteString("Rules; those with * report a note, not an error:")
	for _, r := range check.Rules {
		star := ""
		if r.Severity == check.Note {
			star = "*"
		}
		fmt.Fprintf(&b, "\n    %-18s%1s %s", r.Name, star, r.Summary)
	}
	return b.String()
}

// check finds what is wrong with the probes of a build. Its exit status distinguishes what
// it has found from what it could not read.
func (p *program) check(f *flags, files []string) (found bool, err error) {
	found, err = p.checkFiles(f, files)
	return found, checkError(err)
}

// checkError returns the error that a check ends with: it cannot say that the build is as it
// should be, nor that it is not.
func checkError(err error) error {
	if err == nil || errors.As(err, new(usageError)) || errors.As(err, new(*statusError)) {
		return err
	}
	return &statusError{exitNotChecked, err}
}

// checkFiles looks at all files, and prints at once why one cannot be checked.
func (p *program) checkFiles(f *flags, files []string) (found bool, err error) {
	o, format, baseline, err := f.checkOptions(files)
	if err != nil {
		return false, err
	}
	o.Warn = func(err error) { message.Warning(p.Stderr, err) }
	o.Failed = func(err error) { message.Error(p.Stderr, err) }
	r := &report.Report{Given: f.files, Allowed: f.allowed, Checkout: p.Getenv("GITHUB_WORKSPACE"), Release: release}
	if directory, err := os.Getwd(); err == nil {
		r.Directory, o.Directory = directory, directory
	}
	set := check.New(o)
	for _, name := range f.files {
		set.Add(name)
	}
	r.Add(set)
	if f.writeBaseline != "" {
		data, err := r.Baseline()
		if err != nil {
			return false, fmt.Errorf("%s: %w", f.writeBaseline, err)
		}
		if err := p.files.New(f.writeBaseline, data); err != nil {
			return false, err
		}
	}
	baseline.Apply(r)
	if err := format.Write(p.Stdout, r); err != nil {
		return false, err
	}
	if len(r.Errors) > 0 {
		return false, &statusError{status: exitNotChecked}
	}
	return f.writeBaseline == "" && r.Count(check.Error) > 0, nil
}

// checkOptions checks a command line that was parsed, and reads the files that its flags name.
func (f *flags) checkOptions(files []string) (
	o check.Options, format report.Format, baseline report.Baseline, err error,
) {
	f.files = files
	if err = f.checkNames(); err != nil {
		return o, format, baseline, err
	}
	layouts, err := listedLayouts("", f.section)
	if err != nil {
		return o, format, baseline, usageError{err}
	}
	if f.files, err = input.Distinct(f.files); err != nil {
		return o, format, baseline, err
	}
	o = check.Options{
		Names: f.patch.Names, ProbePrefix: f.patch.ProbePrefix, FollowThin: f.follow, RequireNotes: f.requireNotes,
		Layouts: append(layouts[0].Candidates(), linkerset.Layout{Format: linkerset.Tracepoints}),
	}
	if o.Require, err = readRequirements(f.require); err != nil {
		return o, format, baseline, err
	}
	for _, name := range f.allowed {
		if check.RuleNamed(name) == nil {
			return o, format, baseline, usagef("--allow: unknown rule %q; sdtconvert help check lists them", name)
		}
	}
	if format, err = report.ParseFormat(f.format); err != nil {
		return o, format, baseline, usageError{err}
	}
	if o.Manifest, err = readManifests(f.manifests); err != nil {
		return o, format, baseline, err
	}
	baseline, err = report.ReadBaseline(f.baseline)
	return o, format, baseline, err
}

// readManifests reads what --manifest names, nil for nothing.
func readManifests(names []string) (*check.Manifest, error) {
	if len(names) == 0 {
		return nil, nil
	}
	m := &check.Manifest{}
	for _, name := range names {
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		err = m.Read(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return m, nil
}

// requireFlag is the flag whose value @FILE names a list of probes. As the next word it is
// no response file.
const requireFlag = "--require"

// maxProbeList is the size in MiB of the largest list of probes that is read.
const maxProbeList = 1

// readRequirements reads the values of --require: a probe each, or @FILE.
func readRequirements(values []string) ([]check.Requirement, error) {
	var requirements []check.Requirement
	for _, value := range values {
		name, isFile := strings.CutPrefix(value, "@")
		if !isFile {
			r, err := requirement(value)
			if err != nil {
				return nil, usageError{err}
			}
			requirements = append(requirements, r)
			continue
		}
		listed, err := readProbeList(name)
		if err != nil {
			return nil, err
		}
		requirements = append(requirements, listed...)
	}
	return requirements, nil
}

// requirement reads provider:module:function:name. No text is an error, as of a variable
// that is not set: nothing would be required by mistake.
func requirement(text string) (check.Requirement, error) {
	if text == "" {
		return check.Requirement{}, errors.New("--require names no probe")
	}
	t, err := listing.ParsePattern(text)
	return check.Requirement{Text: text, Match: func(p check.Probe) bool {
		return t.Match(p.Provider, p.Module, p.Function, p.Name)
	}}, err
}

// readProbeList reads a list of probes, one a line; a # begins a comment. An empty list is
// an error: nothing would be required by mistake.
func readProbeList(name string) ([]check.Requirement, error) {
	data, err := input.ReadAtMost(name, maxProbeList)
	if err != nil {
		return nil, err
	}
	var requirements []check.Requirement
	n := 0
	for line := range bytes.Lines(data) {
		n++
		text, _, _ := strings.Cut(string(line), "#")
		words := strings.Fields(text)
		switch {
		case len(words) == 0:
			continue
		case len(words) > 1:
			return nil, fmt.Errorf("%s:%d: %d words; want one probe a line, provider:module:function:name", name, n, len(words))
		}
		r, err := requirement(words[0])
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, n, err)
		}
		r.File, r.Line = name, n
		requirements = append(requirements, r)
	}
	if len(requirements) == 0 {
		return nil, fmt.Errorf("%s: lists no probe", name)
	}
	return requirements, nil
}
