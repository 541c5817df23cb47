package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sdtconvert/internal/check"
	"sdtconvert/internal/input"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/message"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
)

// The flags of check that no other command has.
var (
	requireOption = &option{name: "require", value: "PROBE",
		help: "a site has to have this probe, provider:module:function:name as for list; may be repeated"}
	requireFileOption = &option{head: "    --require @FILE",
		help: "the same for each probe of FILE, one a line, as list --names prints them; a # begins a comment"}
	onlyOption = &option{name: "only", value: "PROBE",
		help: "no site may have another probe, provider:module:function:name; may be repeated, and @FILE lists several"}
	requireNotesOption = &option{name: "require-notes",
		help: "each recorded site of a probe has to have a note, as convert --stapsdt makes it"}
	allowOption = &option{name: "allow", value: "RULE",
		help: "do not apply this rule; may be repeated"}
	formatOption = &option{name: "format", value: "FORMAT",
		help:    "text (default), json, or github, for annotations of the lines",
		choices: choicesOf(check.FormatNames())}
)

// checkCommand finds what is wrong with the probes of a build.
var checkCommand = &command{
	name: "check", synopsis: "check [flags] FILE...", brief: "find what is wrong with the probes of objects, and of what was linked",
	usage: []string{"sdtconvert check [flags] FILE..."},
	text: `Finds what is wrong with the probes of a build: of its converted objects, which
have to be all those of one link, and of programs, libraries and kernel modules. A
site has a record, or a note alone, like those of provider files.`,
	groups: []group{
		{title: "What is required", options: []*option{
			requireOption, requireFileOption, onlyOption, requireNotesOption, allowOption,
		}},
		{title: "What is printed", options: []*option{formatOption}},
		{title: "What is searched for", asConvert: []*option{
			prefixOption, enabledPrefixOption, symbolOption, sectionOption, probePrefixOption, followOption,
		}},
	},
	after: rulesHelp(),
	exit:  "0 no error was found, 1 an error was found, 2 the command line is wrong, 3 a file could not be read, whatever was found in others.",
	new:   func() invocation { return &checkFlags{} },
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

// checkFlags are the flags of check.
type checkFlags struct {
	conversionFlags
	require, only, allowed []string
	requireNotes           bool
	format                 string
}

func (f *checkFlags) bindFlags(s *flagSet) {
	f.conversionFlags.bindFlags(s)
	f.format = check.DefaultFormat
	s.bind("require", &f.require)
	s.bind("only", &f.only)
	s.bind("require-notes", &f.requireNotes)
	s.bind("allow", &f.allowed)
	s.bind("format", &f.format)
}

// run finds what is wrong with the probes of a build. Its exit status distinguishes what
// it has found from what it could not read.
func (f *checkFlags) run(p *program, files []string) (found bool, err error) {
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
func (p *program) checkFiles(f *checkFlags, files []string) (found bool, err error) {
	o, format, err := f.checkOptions(files)
	if err != nil {
		return false, err
	}
	o.Warn = func(err error) { message.Warning(p.Stderr, err) }
	o.Failed = func(err error) { message.Error(p.Stderr, err) }
	r := &check.Report{Checkout: p.Getenv("GITHUB_WORKSPACE")}
	if directory, err := os.Getwd(); err == nil {
		r.Directory = directory
	}
	set := check.New(o)
	for _, name := range f.files {
		set.Add(name)
	}
	r.Add(set)
	if err := format.Write(p.Stdout, r); err != nil {
		return false, err
	}
	if len(r.Errors) > 0 {
		return false, &statusError{status: exitNotChecked}
	}
	return r.Count(check.Error) > 0, nil
}

// checkOptions checks a command line that was parsed, and reads the files that its flags name.
func (f *checkFlags) checkOptions(files []string) (o check.Options, format check.ReportFormat, err error) {
	f.files = files
	if err = f.checkNames(); err != nil {
		return o, format, err
	}
	layouts, err := listedLayouts("", f.section)
	if err != nil {
		return o, format, usageError{err}
	}
	if f.files, err = input.Distinct(f.files); err != nil {
		return o, format, err
	}
	o = check.Options{
		Conventions: sites.Conventions{
			Names: f.patch.Names, ProbePrefix: f.patch.ProbePrefix,
			Layouts: append(layouts[0].Candidates(), linkerset.Layout{Format: linkerset.Tracepoints}),
		},
		FollowThin: f.follow, RequireNotes: f.requireNotes, Allow: f.allowed,
	}
	if o.Require, err = readRequirements(requireFlag, f.require); err != nil {
		return o, format, err
	}
	if o.Only, err = readRequirements(onlyFlag, f.only); err != nil {
		return o, format, err
	}
	for _, name := range f.allowed {
		if check.RuleNamed(name) == nil {
			return o, format, usagef("--allow: unknown rule %q; sdtconvert help check lists them", name)
		}
	}
	if format, err = check.ParseFormat(f.format); err != nil {
		return o, format, usageError{err}
	}
	return o, format, nil
}

// The flags whose value @FILE names a list of probes. As the next word it is
// no response file.
const (
	requireFlag = "--require"
	onlyFlag    = "--only"
)

// maxProbeList is the size in MiB of the largest list of probes that is read.
const maxProbeList = 4

// readRequirements reads the values of a flag: a probe each, or @FILE.
func readRequirements(flag string, values []string) ([]check.Requirement, error) {
	var requirements []check.Requirement
	for _, value := range values {
		name, isFile := strings.CutPrefix(value, "@")
		if isFile && name == "" {
			return nil, usagef("%s @ names no file", flag)
		}
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

// requirement reads provider:module:function:name. A text without any part is an error, as of a variable
// that is not set: any probe would do.
func requirement(text string) (check.Requirement, error) {
	if strings.Trim(text, ": \t") == "" {
		return check.Requirement{}, fmt.Errorf("%q names no probe; want provider:module:function:name", text)
	}
	t, err := listing.ParsePattern(text)
	return check.Requirement{Text: text, Name: t.LiteralName(), Match: func(p check.Probe, anywhere bool) bool {
		if anywhere {
			return listing.Pattern{Provider: t.Provider, Name: t.Name}.Match(p.Provider, "", "", p.Name)
		}
		return t.Match(p.Provider, p.Module, p.Function, p.Name)
	}}, err
}

// readProbeList reads a list of probes, one a line. A # at the start of a line or behind a blank begins a
// comment, and a probe that is listed twice counts once. An empty list is an error: nothing would be required by
// mistake.
func readProbeList(name string) ([]check.Requirement, error) {
	data, err := input.ReadAtMost(name, maxProbeList)
	if err != nil {
		return nil, err
	}
	var requirements []check.Requirement
	seen := map[string]bool{}
	n := 0
	for line := range bytes.Lines(data) {
		n++
		words := strings.Fields(string(line))
		if i := slices.IndexFunc(words, func(w string) bool { return w[0] == '#' }); i >= 0 {
			words = words[:i]
		}
		switch {
		case len(words) == 0:
			continue
		case len(words) > 1:
			return nil, fmt.Errorf("%s:%d: %d words; want one probe a line, provider:module:function:name", name, n, len(words))
		}
		if seen[words[0]] {
			continue
		}
		seen[words[0]] = true
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
