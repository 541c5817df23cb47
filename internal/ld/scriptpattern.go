package ld

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/internal/filetype"
	"sdtconvert/internal/ld/line"
)

// What cannot be told of a pattern.
var (
	errDiffers = errors.New("does not mean the same of inputs and of their converted copies; link with --in-place")
	errObscure = errors.New("has a class of characters that is not understood, and there are converted copies; link with --in-place")
	errLate    = errors.New("names link-time optimisation code that holds probes; compile it with -fno-lto")
)

// pattern returns how a pattern has to change to mean the same as before.
func (c *scriptCopier) pattern(p line.Pattern) ([]edit, error) {
	if p.Text == "*" && !p.Quoted {
		return nil, nil
	}
	missing, extra := c.difference(p, p, false)
	switch {
	case c.readsLate(p):
		return nil, errLate
	case line.Obscure(p.Text) && slices.ContainsFunc(c.files, func(f comparedFile) bool { return f.changed() }):
		return nil, errObscure
	case len(missing) == 0 && len(extra) == 0:
		return nil, nil
	case p.Excludes && len(extra) > 0:
		return nil, errDiffers
	case p.Excludes:
		return c.excludeMore(p, missing)
	}
	with := p
	if len(missing) > 0 {
		var err error
		if with, err = c.moves(p); err != nil || with.Text == p.Text {
			return nil, err
		}
	}
	missing, extra = c.difference(p, with, true)
	if len(missing) > 0 || len(extra) > 0 && c.dialect.Exact(p) {
		return nil, errDiffers
	}
	edits, err := c.excludeFrom(p, extra)
	if with.Text != p.Text {
		written, wrong := c.written(with)
		err = errors.Join(err, wrong)
		edits = append(edits, edit{p.Span, written})
		c.names = append(c.names, renamed{with.Text, p.Text})
	}
	return edits, err
}

// readsLate reports whether GNU ld would read an input that code has taken the place of.
func (c *scriptCopier) readsLate(p line.Pattern) bool {
	return c.loaded(p).File != "" && slices.ContainsFunc(c.files, func(f comparedFile) bool {
		return f.in.late.Compiler != "" && f.in.probes && f.was.Given == p.Text
	})
}

// difference compares what a pattern has chosen with what another chooses among the
// files as they are now, or only among those that have changed.
func (c *scriptCopier) difference(was, is line.Pattern, all bool) (missing, extra []comparedFile) {
	for _, f := range c.files {
		if !all && !f.changed() {
			continue
		}
		switch before, after := c.dialect.Selects(was, f.was), c.dialect.Selects(is, f.is); {
		case before && !after:
			missing = append(missing, f)
		case after && !before:
			extra = append(extra, f)
		}
	}
	return missing, extra
}

// moves returns a pattern that means the copies. It is the same pattern where files have
// to be linked beside these first.
func (c *scriptCopier) moves(p line.Pattern) (line.Pattern, error) {
	file, member, two := strings.Cut(p.Text, ":")
	if c.dialect == line.Gold {
		file, member, two = p.Text, "", false
	}
	rest := p.Text[len(file):]
	var chosen []comparedFile
	for _, f := range c.files {
		if !c.dialect.Selects(p, f.was) {
			continue
		}
		chosen = append(chosen, f)
	}
	if !line.IsWildcard(file) || c.dialect.Exact(p) {
		for _, f := range chosen {
			if name := cmpName(c.dialect, f.was, two); f.changed() && file == name {
				with := c.replaced(p, cmpName(c.dialect, f.is, two), rest)
				if f.loaded && line.IsWildcard(with.Text) {
					return p, errDiffers // then the linker would read nothing
				}
				return with, nil
			}
		}
		return p, errDiffers
	}
	prefix, err := c.prefix(chosen)
	if err != nil || prefix == "" {
		return p, err
	}
	if c.unsure && strings.IndexByte("*?[/", file[0]) >= 0 {
		return p, errDiffers // it may choose a library that the linker finds by itself
	}
	if file[0] != '/' {
		prefix += "/"
	}
	p.Text = c.wild(prefix) + file
	if two {
		p.Text += ":" + member
	}
	return p, nil
}

// replaced returns a pattern with another name of a file, and with the same of a member.
func (c *scriptCopier) replaced(p line.Pattern, name, rest string) line.Pattern {
	if c.dialect == line.LLD && !p.Quoted && line.IsWildcard(rest) {
		p.Text = c.wild(name) + rest
		return p
	}
	text, exact := c.literal(name)
	p.Text, p.Quoted = text+rest, exact
	return p
}

// special are characters that mean something in patterns, whatever quotes are around.
var special = map[line.Dialect]string{line.GNU: `*?[":`, line.Gold: `*?["`, line.LLD: `":`}

// literal returns a pattern that chooses a name: exactly, or as well as a linker knows how
// to write it.
func (c *scriptCopier) literal(name string) (text string, exact bool) {
	if strings.ContainsAny(name, special[c.dialect]) {
		return c.wild(name), false
	}
	return name, true
}

// wild returns a part of a pattern with wildcards that stands for a name. What would mean
// something there is any character.
func (c *scriptCopier) wild(name string) string {
	const safe = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_./-+"
	text := []byte(name)
	for i, b := range text {
		if c.dialect == line.LLD && strings.IndexByte(safe, b) < 0 || strings.IndexByte(`*?[\":`, b) >= 0 {
			text[i] = '?'
		}
	}
	return string(text)
}

// cmpName returns the name of a file that patterns without wildcards are compared with.
func cmpName(d line.Dialect, f line.File, archive bool) string {
	if d == line.GNU && !archive {
		return f.Given
	}
	return f.Name
}

// prefix returns what all files have got before their names. It is "" where some have none
// yet.
func (c *scriptCopier) prefix(chosen []comparedFile) (prefix string, err error) {
	all := true
	for _, f := range chosen {
		if !f.changed() {
			all = false
			if err := c.link(f.in); err != nil {
				return "", err
			}
			continue
		}
		name := f.was.Name
		if !filepath.IsAbs(name) {
			name = "/" + name
		}
		before, ok := strings.CutSuffix(f.is.Name, name)
		if !ok || before == "" || prefix != "" && before != prefix {
			return "", errDiffers
		}
		prefix = before
	}
	if !all {
		prefix = ""
	}
	return prefix, nil
}

// link puts a link to an input beside the copies.
func (c *scriptCopier) link(in *linkInput) error {
	if in.typ == filetype.ThinArchive {
		return errDiffers // its members are found from where it is
	}
	if _, known := c.links[in.path]; known {
		return nil
	}
	place, err := c.session.linkTo(in.path, in.file)
	c.links[in.path] = place
	return err
}

// excludeMore returns a change of a list of EXCLUDE_FILE that leaves out more files. The
// pattern stays: even a plain name also leaves out members of archives that have it.
func (c *scriptCopier) excludeMore(p line.Pattern, missing []comparedFile) ([]edit, error) {
	more, err := c.exclusions(missing)
	return []edit{{line.Span{Start: p.Span.End, End: p.Span.End}, " " + strings.Join(more, " ")}}, err
}

// excludeFrom returns a change of the sections behind a pattern that leaves out files.
func (c *scriptCopier) excludeFrom(p line.Pattern, extra []comparedFile) (edits []edit, err error) {
	if len(extra) == 0 {
		return nil, nil
	}
	if len(p.Sections) == 0 {
		return nil, errDiffers
	}
	words, err := c.exclusions(extra)
	list := strings.Join(words, " ")
	for _, s := range p.Sections {
		switch {
		case s.Sorted && c.dialect == line.Gold:
			return nil, errDiffers // not in the grammar there
		case s.List >= 0:
			edits = append(edits, edit{line.Span{Start: s.List, End: s.List}, " " + list})
		case c.dialect != line.LLD || !s.Follows:
			edits = append(edits, edit{line.Span{Start: s.At, End: s.At}, "EXCLUDE_FILE(" + list + ") "})
		}
	}
	return edits, err
}

// exclusions returns patterns that choose files as they are now, and no others.
func (c *scriptCopier) exclusions(files []comparedFile) (words []string, err error) {
	var all []line.Pattern
	seen := map[string]bool{}
	for _, f := range files {
		name, exact := c.literal(f.is.Name)
		of := f.is.Member
		if !exact {
			of = c.wild(of)
		}
		switch {
		case !f.is.Archive:
		case c.dialect == line.Gold:
			name += "(" + of + ")"
		default:
			name += ":" + of
		}
		if seen[name] {
			continue
		}
		seen[name] = true
		one := line.Pattern{Name: line.Name{Text: name, Quoted: exact}, Excludes: true}
		written, wrong := c.written(one)
		err = errors.Join(err, wrong)
		all = append(all, one)
		words = append(words, written)
		c.names = append(c.names, renamed{name, strings.Replace(name, f.is.Name, f.was.Name, 1)})
	}
	for _, f := range c.files {
		excluded := slices.ContainsFunc(all, func(one line.Pattern) bool { return c.dialect.Selects(one, f.is) })
		wanted := slices.ContainsFunc(files, func(g comparedFile) bool { return g.is == f.is })
		if excluded != wanted {
			return nil, errDiffers
		}
	}
	return words, err
}

// written returns a pattern as it stands in a script.
func (c *scriptCopier) written(p line.Pattern) (string, error) {
	if c.dialect == line.LLD && !p.Quoted {
		if strings.ContainsAny(p.Text, " \t\r\n\v\f\"(){},;#") {
			return "", errDiffers
		}
		return p.Text, nil
	}
	if strings.Contains(p.Text, `"`) {
		return "", errDiffers
	}
	return quoted(p.Text), nil
}
