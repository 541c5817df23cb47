package ld

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"sdtconvert/internal/check"
	"sdtconvert/internal/input"
	"sdtconvert/internal/process"
	"sdtconvert/internal/supervise"
	"sdtconvert/patch"
)

// output is what a link writes, and what was there before.
type output struct {
	path     string
	before   fs.FileInfo        // nil for no file
	identity supervise.Identity // of the file before
}

// outputOf returns the output of a link that has not begun.
func outputOf(ln *commandLine) output {
	o := output{path: ln.inDirectory(cmp.Or(ln.output, "a.out"))}
	o.before, _ = os.Stat(o.path)
	o.identity, _ = supervise.Identify(o.path)
	return o
}

// hasChanged reports whether there is a regular file that is not the one that was there before the link.
func (o output) hasChanged() bool {
	now, err := os.Lstat(o.path)
	return err == nil && now.Mode().IsRegular() && (o.before == nil || input.IsChanged(o.before, now))
}

// removeIfChanged removes what a linker has written.
func (o output) removeIfChanged() {
	if o.hasChanged() {
		os.Remove(o.path)
	}
}

// finishLink returns the status of a link. It verifies the output if that is 0.
func (l *link) finishLink(o output, status process.Status, err error, unconverted []*inputFile) (process.Status, error) {
	if err != nil || status != (process.Status{}) {
		return status, err
	}
	return status, verify(o, l.Convert.Patch.Names, unconverted)
}

// finishUnseen is finishLink of a link whose linker may have read other files than the survey has, some of which concern probes.
func (l *link) finishUnseen(o output, status process.Status, err error, s survey) (process.Status, error) {
	if err == nil && status == (process.Status{}) && s.missesFiles && o.hasChanged() {
		if _, notELF := check.UnconvertedFile(o.path, l.Convert.Patch.Names); errors.Is(notELF, check.ErrNotELF) && s.contains(func(in *inputFile) bool { return in.namesProbes }) {
			err = fmt.Errorf("%s: cannot look for unconverted tracepoints of inputs that sdtconvert has not seen: %w; convert the objects before the link, and give the linker each by its path. The output is removed", o.path, notELF)
			return status, errors.Join(err, os.Remove(o.path))
		}
	}
	return l.finishLink(o, status, err, s.inputs())
}

// verify fails if the output holds an unconverted tracepoint, or notes with wrong addresses, and removes it: the conversion may have missed an
// input that only the linker knows, or that it could not see. The error names those of the inputs, which were
// not converted, that hold it.
func verify(o output, patterns patch.Names, unconverted []*inputFile) error {
	if !o.hasChanged() {
		return nil
	}
	findings, err := check.UnconvertedFile(o.path, patterns)
	switch {
	case errors.Is(err, check.ErrNotELF): // checkPipes has refused inputs that were not seen
		return nil
	case err != nil:
		err = fmt.Errorf("cannot look for unconverted tracepoints in the output: %w", err)
	case len(findings) > 0:
		err = unconvertedError(o.path, findings, inputsHolding(findings, unconverted, patterns))
	default:
		err = checkBases(o.path)
	}
	if err == nil {
		return nil
	}
	return errors.Join(err, os.Remove(o.path))
}

// checkBases fails if notes of an output have wrong addresses.
func checkBases(path string) error {
	findings, err := check.WrongBases(path)
	switch {
	case err != nil:
		return fmt.Errorf("cannot look at the notes of the output: %w", err)
	case len(findings) > 0:
		return fmt.Errorf("%s: %s. The output is removed", path, findings[0].Message)
	}
	return nil
}

// unconvertedError says which probes an output holds unconverted, and which files they are of.
func unconvertedError(out string, findings []check.Finding, files []string) error {
	const most = 5
	what := findings[0].Message
	if probes := check.ProbesOf(findings); len(probes) > 0 {
		what = shortList(probes, most)
	}
	if len(files) == 0 {
		files = []string{"an input that sdtconvert has not seen"}
	}
	return fmt.Errorf("%s: holds tracepoints that were not converted (%s), of %s; convert their objects before the link, with sdtconvert or sdtconvert cc. The output is removed", out, what, shortList(files, most))
}

// shortList returns the first words of a list, and how many more there are.
func shortList(words []string, most int) string {
	if len(words) <= most {
		return strings.Join(words, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(words[:most], ", "), len(words)-most)
}

// inputsHolding returns the names of the inputs, or members of archives, that hold tracepoints of the probes of
// findings, or intermediate code that mentions them.
func inputsHolding(findings []check.Finding, inputs []*inputFile, patterns patch.Names) (names []string) {
	var probes [][]byte
	for _, probe := range check.ProbesOf(findings) {
		probes = append(probes, []byte(probe))
	}
	for _, in := range inputs {
		// A file that cannot be read is left out of the message.
		_ = input.Each(in.path, input.Options{FollowThin: true}, func(src *input.Source) error {
			mentions, err := src.Mentions(probes)
			if err != nil || !mentions {
				return nil
			}
			if sites, err := check.Unconverted(src, patterns); in.generatesProbes || err == nil && len(sites) > 0 {
				names = append(names, strings.Replace(src.Name, in.path, in.name, 1))
			}
			return nil
		})
	}
	slices.Sort(names)
	return slices.Compact(names)
}
