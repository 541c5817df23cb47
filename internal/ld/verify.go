package ld

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"sdtconvert/internal/check"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/process"
	"sdtconvert/patch"
)

// verified runs a link, and looks at the output of one that ends with status 0: the conversion may have
// missed an input that only the linker knows, or that it could not see. If the output holds an unconverted
// tracepoint, it is removed. unconverted returns the inputs that were not converted.
func (l *link) verified(ln *line.Line, unconverted func() []*linkInput, link func() (process.Status, error)) (process.Status, error) {
	out := output(ln)
	was, _ := os.Stat(out)
	status, err := link()
	if err != nil || status != (process.Status{}) || !hasChanged(out, was) {
		return status, err
	}
	names := l.Convert.Patch.Names
	findings, err := unconvertedSites(out, names)
	switch {
	case err != nil:
		err = fmt.Errorf("cannot look for unconverted tracepoints in the output: %w", err)
	case len(findings) > 0:
		err = unconvertedError(out, findings, holders(unconverted(), names, findings))
	default:
		return status, nil
	}
	return status, errors.Join(err, os.Remove(out))
}

// unconvertedSites returns the tracepoints of an output that are not converted.
func unconvertedSites(out string, names patch.Names) ([]check.Finding, error) {
	f, err := input.Open(out)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return check.Unconverted(f.Source(), names)
}

// probesOf returns the probes of findings.
func probesOf(findings []check.Finding) (probes []string) {
	for _, f := range findings {
		if f.Probe != "" {
			probes = append(probes, f.Probe)
		}
	}
	slices.Sort(probes)
	return slices.Compact(probes)
}

// unconvertedError says which probes an output holds unconverted, and which files they are of.
func unconvertedError(out string, findings []check.Finding, files []string) error {
	const most = 5
	what := findings[0].Message
	if probes := probesOf(findings); len(probes) > 0 {
		what = listed(probes, most)
	}
	if len(files) == 0 {
		files = []string{"an input that sdtconvert has not seen"}
	}
	return fmt.Errorf("%s: holds tracepoints that were not converted (%s), of %s; convert their objects before the link, with sdtconvert or sdtconvert cc. The output is removed", out, what, listed(files, most))
}

// listed returns the first words of a list, and how many more there are.
func listed(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}

// holders returns the names of the inputs, or members of archives, that hold tracepoints of the probes that were
// found, or intermediate code that mentions them.
func holders(inputs []*linkInput, patterns patch.Names, findings []check.Finding) (names []string) {
	var probes [][]byte
	for _, probe := range probesOf(findings) {
		probes = append(probes, []byte(probe))
	}
	for _, in := range inputs {
		// A file that cannot be read is left out of the message.
		_ = input.Each(in.path, input.Options{FollowThin: true}, func(src *input.Source) error {
			mentions, err := src.Mentions(probes)
			if err != nil || !mentions {
				return nil
			}
			if sites, err := check.Unconverted(src, patterns); in.generates || err == nil && len(sites) > 0 {
				names = append(names, strings.Replace(src.Name, in.path, in.name, 1))
			}
			return nil
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}
