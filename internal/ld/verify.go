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
	findings, err := check.Unconverted(out, l.Convert.Patch.Names)
	switch {
	case err != nil:
		err = fmt.Errorf("cannot look for unconverted tracepoints in the output: %w", err)
	case len(findings) > 0:
		err = unconvertedError(out, findings, unconverted())
	default:
		return status, nil
	}
	return status, errors.Join(err, os.Remove(out))
}

// unconvertedError names the probes that an output holds unconverted, and the inputs that mention them.
func unconvertedError(out string, findings []check.Finding, inputs []*linkInput) error {
	const most = 5
	var probes []string
	for _, f := range findings {
		if f.Probe != "" {
			probes = append(probes, f.Probe)
		}
	}
	slices.Sort(probes)
	probes = slices.Compact(probes)
	what := findings[0].Message
	if len(probes) > 0 {
		what = listed(probes, most)
	}
	files := mentioning(inputs, probes)
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

// mentioning returns the names of the inputs, or members of archives, in which one of the texts occurs.
func mentioning(inputs []*linkInput, texts []string) (names []string) {
	wanted := make([][]byte, len(texts))
	for i, text := range texts {
		wanted[i] = []byte(text)
	}
	for _, in := range inputs {
		// What cannot be read here is left out of a message.
		_ = input.Each(in.path, input.Options{FollowThin: true}, func(src *input.Source) error {
			if found, err := src.Mentions(wanted); err == nil && found {
				names = append(names, strings.Replace(src.Name, in.path, in.name, 1))
			}
			return nil
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}
