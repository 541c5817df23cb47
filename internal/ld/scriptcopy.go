package ld

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/paths"
)

// A script that names inputs, or chooses them by patterns, names their copies for a
// linker that reads copies. So the linker reads a copy of such a script too, which is
// the script but for those names. Since that stands in another directory, what the script
// names relative to its own directory is named in full.
//
// Some patterns cannot mean the copies alone. Then either a link to each other file that
// they choose is put beside the copies, or the copies that they are not to choose are
// excluded. What is left is refused.

// scriptCopier makes copies of scripts.
type scriptCopier struct {
	scriptReader
	session *session
	done    *converted
	byPath  map[string]*linkInput
	byArg   map[int]*linkInput

	moved   map[*script]string // places of copies
	links   map[string]string  // to inputs that have no copies, by path
	members map[string][]string
	files   []comparedFile
	unsure  bool // the linker may read files that are not known
	names   []renamed
}

// edit is a change of a text.
type edit struct {
	line.Span
	text string
}

// copyScripts makes the linker read copies of the scripts that name inputs of which there
// are copies now. Code stands for inputs that are late, whose names must not be met.
func (l *link) copyScripts(scan *scanner, flags []*script, inputs scanned, late []*linkInput, done *converted) error {
	c := &scriptCopier{
		scriptReader: scan.reader, session: l.session, done: done, byArg: inputs.byArg, byPath: map[string]*linkInput{},
		moved: map[*script]string{}, links: map[string]string{}, members: map[string][]string{},
	}
	roots := slices.Clone(flags)
	for _, in := range inputs.inputs {
		c.byPath[in.path] = in
		if in.text != nil {
			roots = append(roots, in.text)
		}
	}
	if len(roots) == 0 {
		return nil
	}
	if err := c.checkWords(scan, roots); err != nil && !l.InPlace {
		return err
	}
	if len(done.copies) == 0 && len(late) == 0 {
		return nil
	}
	if err := checkFormats(roots); err != nil {
		return err
	}
	if err := c.settle(roots); err != nil {
		return err
	}
	return c.write(flags, roots, inputs.inputs)
}

// checkFormats refuses scripts that have inputs read in another format than ELF, which are not
// to be converted. Linkers do not agree which inputs those are.
func checkFormats(roots []*script) error {
	var errs []error
	for _, root := range roots {
		root.each(func(s *script) {
			if s.text.Foreign != "" {
				errs = append(errs, fmt.Errorf("%s: TARGET(%s) is of files that are not told from those with probes; name them in the line behind --format", s.path, s.text.Foreign))
			}
		})
	}
	return errors.Join(errs...)
}

// checkWords refuses scripts that name files with probes in ways that are not understood.
func (c *scriptCopier) checkWords(scan *scanner, roots []*script) error {
	var errs []error
	for _, root := range roots {
		root.each(func(s *script) {
			for _, word := range literal(s.text.Words) {
				found := c.line.ScriptInput(c.dialect, s.place, line.Name{Text: word})
				if found.File == "" {
					continue
				}
				if in := scan.input(named{path: found.Path, file: found.File}); in.probes || in.err != nil {
					errs = append(errs, fmt.Errorf("%s: names %s, which holds probes, and the linker would read that and no copy; link with --in-place", s.path, word))
				}
			}
		})
	}
	return errors.Join(errs...)
}

// settle finds out which scripts and which links there have to be, until nothing more
// follows from that.
func (c *scriptCopier) settle(roots []*script) error {
	for {
		before := len(c.moved) + len(c.links)
		if err := c.compared(roots); err != nil {
			return err
		}
		var errs []error
		for _, root := range roots {
			root.each(func(s *script) {
				edits, err := c.edits(s)
				if err != nil {
					errs = append(errs, err)
				} else if _, known := c.moved[s]; len(edits) > 0 && !known {
					c.moved[s] = c.newPlace(s)
				}
			})
		}
		if len(errs) > 0 {
			return errors.Join(errs...)
		}
		if len(c.moved)+len(c.links) == before {
			return nil
		}
	}
}

// place returns where the linker reads an input, if that is not where it was.
func (c *scriptCopier) place(in *linkInput) (string, bool) {
	if place, ok := c.done.copies[in.path]; ok {
		return place, true
	}
	if in.text != nil {
		if name, ok := c.moved[in.text]; ok {
			return name, true
		}
	}
	place, ok := c.links[in.path]
	return place, ok
}

// scriptsDirectory is where copies of scripts are, each in a directory of its own: nothing
// is there that their relative names could find.
const scriptsDirectory = "scripts"

// newPlace returns the place of another copy. It ends as the path of the script does, so
// that a report spells it as that.
func (c *scriptCopier) newPlace(s *script) string {
	return placeIn(c.session.inTemp(fmt.Sprintf("%s/%d", scriptsDirectory, len(c.moved))), s.path)
}

// edits returns what changes in a script.
func (c *scriptCopier) edits(s *script) (edits []edit, err error) {
	for _, name := range s.text.Inputs {
		text, err := c.inputName(s, name)
		if err != nil {
			return nil, err
		}
		if text != name.Text {
			edits = append(edits, edit{name.Span, quoted(text)})
		}
	}
	for i, include := range s.text.Includes {
		if place, ok := c.moved[s.includes[i]]; ok && s.includes[i] != nil {
			if strings.Contains(place, `"`) {
				return nil, fmt.Errorf("%s: includes %s, and the name of its copy cannot be quoted; link with --in-place", s.path, include.Text)
			}
			edits = append(edits, edit{include.Span, quoted(place)})
		}
	}
	c.names = nil
	for _, p := range s.text.Patterns {
		more, err := c.pattern(p)
		if err != nil {
			return nil, fmt.Errorf("%s: the pattern %s %w", s.path, p.Text, err)
		}
		edits = append(edits, more...)
	}
	for _, e := range edits {
		if inner := strings.Trim(e.text, `"`); strings.ContainsAny(inner, "\n") {
			return nil, fmt.Errorf("%s: the name %q cannot stand in a script; link with --in-place", s.path, inner)
		}
	}
	return edits, nil
}

// quoted writes a name so that all linkers read it again.
func quoted(name string) string { return `"` + name + `"` }

func (c *scriptCopier) hasProbes(path string) bool {
	in := c.byPath[path]
	return in != nil && in.probes
}

// inputName returns what a script is to call an input.
func (c *scriptCopier) inputName(s *script, word line.Name) (string, error) {
	if s.place.Foreign {
		return word.Text, nil
	}
	name, found := word.Text, c.line.ScriptInput(c.dialect, s.place, word)
	_, moved := c.moved[s.base]
	if found.File == "" {
		if moved && filepath.IsAbs(name) { // a copy of the script is not in the system root
			return paths.Absolute(c.line.InDirectory(c.line.AbsoluteInput(s.place, name)))
		}
		return name, nil
	}
	if found.Other != "" && (moved || c.hasProbes(found.Path) || c.hasProbes(found.Other)) {
		return "", fmt.Errorf("%s: names %s, which may be %s or %s to this linker; name one in full", s.path, name, found.Path, found.Other)
	}
	if in := c.byPath[found.Path]; in != nil {
		if place, ok := c.place(in); ok {
			if strings.Contains(place, `"`) {
				return "", fmt.Errorf("%s: names %s, and the name of its copy cannot be quoted; link with --in-place", s.path, name)
			}
			return place, nil
		}
	}
	if !moved || c.dialect.NamesLibrary(word) {
		return name, nil
	}
	if c.dialect == line.Gold && !filepath.IsAbs(found.Path) && strings.HasPrefix(found.Path, s.place.First) {
		return paths.Absolute(found.Path)
	}
	if found.Path != name && (found.Maybe || filepath.IsAbs(name) || s.place.First != "" && found.Path == s.place.First+name) {
		return found.Path, nil
	}
	return name, nil
}

// write writes the copies of scripts, and has them stand for the originals.
func (c *scriptCopier) write(flags, roots []*script, inputs []*linkInput) error {
	if len(c.moved) == 0 {
		return nil
	}
	var errs []error
	for _, root := range roots {
		root.each(func(s *script) {
			if place, ok := c.moved[s]; ok {
				errs = append(errs, c.writeScript(s, place))
			}
		})
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	c.done.scripts = map[string]string{}
	for i := range c.line.Args {
		arg := &c.line.Args[i]
		for _, s := range flags {
			if place, ok := c.moved[s]; ok && s.value == arg.Value {
				c.done.scripts[arg.Value] = place
			}
		}
	}
	for _, in := range inputs {
		place, ok := c.place(in)
		if _, known := c.done.copies[in.path]; ok && !known {
			c.done.copies[in.path] = place
			c.done.names = append(c.done.names, renamedAs(place, in.path)...)
		}
	}
	return nil
}

func (c *scriptCopier) writeScript(s *script, place string) error {
	edits, err := c.edits(s)
	if err != nil {
		return err
	}
	if s.cut {
		return fmt.Errorf("%s: names inputs with probes, and is larger than %d MB; link with --in-place", s.path, maxScript>>20)
	}
	c.done.names = slices.Concat(c.done.names, c.names, renamedAs(place, s.path))
	return c.session.writeAt(place, []byte(apply(s.text.Text, edits)))
}

// apply changes a text. No two edits are of the same bytes.
func apply(text string, edits []edit) string {
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b edit) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End)) })
	var out strings.Builder
	at := 0
	for _, e := range edits {
		out.WriteString(text[at:e.Start] + e.text)
		at = e.End
	}
	out.WriteString(text[at:])
	return out.String()
}
