package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"sdtconvert/internal/check"
	"sdtconvert/internal/input"
	"sdtconvert/internal/listing"
)

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
