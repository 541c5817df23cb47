package convert

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
)

// convertThin converts the files that are members of a thin archive and, once they are
// converted, brings the archive's headers and index up to date. Linkers read the
// files and not the sizes in the headers, so that every moment in between is one that
// a build can start from; so is the end of an interrupted run, which another one
// completes.
//
// All members are converted in memory first, and again to be written: if one of them
// cannot be, none is, and no more than one is in memory.
func (c *Converter) convertThin(a *input.Archive, r *Result) error {
	var lines bytes.Buffer
	t := newThinChanges(c, a)
	err := c.convertMembers(a, r, func(m *member) error {
		lines.Write(m.lines.Bytes())
		return t.note(m)
	}, func() error { return nil })
	if err != nil {
		return err
	}
	if err := t.rehearse(); err != nil {
		return err
	}
	e := a.Edit()
	if !c.DryRun {
		var converted int
		converted, err = t.write(e)
		if err != nil {
			r.changed = r.changed[:min(converted, len(r.changed))]
			lines.Reset() // they are of all members
		}
		r.markConverted()
	}
	return errors.Join(err, c.update(a, e, &lines, r))
}

// update writes the headers and the index of a thin archive, if they change.
func (c *Converter) update(a *input.Archive, e *archive.Edit, lines *bytes.Buffer, r *Result) error {
	if e.Changed() {
		out, err := e.Save()
		if err != nil {
			return err
		}
		if err := c.write(a.File, a.File.Path, out); err != nil {
			return err
		}
	}
	r.markWritten(lines.Bytes())
	return nil
}

// thinChanges are the members of a thin archive that change, or have done so since
// their sizes were written into it.
type thinChanges struct {
	*Converter
	a       *input.Archive
	members []thinChange
	done    map[string]archive.Change // by path: a file may be in the archive twice
}

func newThinChanges(c *Converter, a *input.Archive) *thinChanges {
	return &thinChanges{Converter: c, a: a, done: make(map[string]archive.Change)}
}

type thinChange struct {
	*archive.Member
	name, path string
	convert    bool           // or it has changed
	planned    archive.Change // but for symbols that the conversion will add
}

// note takes in a member, in memory, if it is one that changes.
func (t *thinChanges) note(m *member) (err error) {
	src := m.src
	n := thinChange{Member: src.Member, name: src.Name, path: src.File.Path, convert: m.output != nil}
	switch {
	case n.convert && n.Origin != 0:
		return fmt.Errorf("%s: is in another archive; convert %s and collect this archive anew, or convert it to another file", n.name, n.path)
	case n.convert:
		n.planned.Output = &elfreloc.Output{Size: m.output.Size}
	case n.Origin == 0 && m.object != nil && src.Size != n.Size:
		if n.planned, err = t.copyUnchanged(src, m.object); err != nil {
			return err
		}
	default:
		return nil
	}
	t.members = append(t.members, n)
	return nil
}

// copyUnchanged returns the change of a member that has changed meanwhile.
func (t *thinChanges) copyUnchanged(src *input.Source, o *input.Object) (change archive.Change, err error) {
	change = archive.Change{Output: &elfreloc.Output{Size: src.Size}, BeforeUnknown: true}
	if t.a.HasIndex() {
		change.After, err = archive.Symbols(o.Object)
	}
	return change, err
}

// rehearse finds out whether the archive can be brought up to date, before any
// member is written.
func (t *thinChanges) rehearse() error {
	e := t.a.Edit()
	for i := range t.members {
		if err := e.Replace(t.members[i].Member, t.members[i].planned); err != nil {
			return err
		}
	}
	if !e.Changed() {
		return nil
	}
	_, err := e.Begin()
	return err
}

// write converts the files, and collects what changes in the archive. An error leaves
// those converted that come before it, and e says so. It returns how many files were
// converted.
func (t *thinChanges) write(e *archive.Edit) (converted int, err error) {
	for i := range t.members {
		m := &t.members[i]
		change := m.planned
		if m.convert {
			if change, err = t.convertFile(m); err != nil {
				return converted, err
			}
			converted++
		}
		if err := e.Replace(m.Member, change); err != nil {
			return converted, err
		}
	}
	return converted, nil
}

// convertFile converts the file of a member in its place. Another thin archive may
// have it too, and be converted at the same time.
func (t *thinChanges) convertFile(m *thinChange) (change archive.Change, err error) {
	if change, ok := t.done[m.path]; ok {
		return change, nil
	}
	err = retry(func() error {
		change, err = t.tryFile(m)
		return err
	})
	if err == nil {
		t.done[m.path] = change
	}
	return change, err
}

// tryFile tries once to convert the file of a member.
func (t *thinChanges) tryFile(m *thinChange) (changed archive.Change, err error) {
	in, err := input.Open(m.path)
	if err != nil {
		return changed, err
	}
	defer in.Close()
	src := &input.Source{Name: m.name, Size: in.Size(), File: in, Member: m.Member}
	var result conversion
	err = t.convert(src, &result)
	o, out := result.object, result.output
	switch {
	case err != nil:
		return changed, err
	case o == nil:
		return changed, fmt.Errorf("%s: %w", m.name, input.ErrChanged)
	case out == nil: // another process has converted it
		return t.copyUnchanged(src, o)
	}
	if changed, err = memberChange(t.a, src, o, out); err != nil {
		return changed, err
	}
	err = t.writer.File(m.path, in, out)
	changed.Output = &elfreloc.Output{Size: out.Size} // the rest is written
	return changed, err
}

// collect makes a regular archive of a thin one, with its members converted inside.
func (c *Converter) collect(a *input.Archive, target string, r *Result) error {
	to := a.Collect()
	return c.writeArchive(a, target, r, to, func(m *member) error {
		name := filepath.Base(m.src.Member.Name)
		if m.src.Inner != nil {
			name = m.src.Inner.Name
		}
		changed, err := collected(a, m)
		if err != nil {
			return err
		}
		return to.Add(m.src.Member, name, changed)
	})
}

// collected returns what a member of a thin archive becomes inside of a regular one.
func collected(a *input.Archive, m *member) (changed archive.Change, err error) {
	if m.output == nil {
		changed.Output = &elfreloc.Output{Size: m.src.Size, Extents: []elfreloc.Extent{{Len: m.src.Size}}}
	} else if changed, err = memberChange(a, m.src, m.object, m.output); err != nil {
		return changed, err
	}
	extents := slices.Clone(changed.Output.Extents)
	for i := range extents {
		if x := &extents[i]; x.Data == nil && x.From == nil {
			x.From = namedReader{m.src}
		}
	}
	changed.Output = &elfreloc.Output{Size: changed.Output.Size, Extents: extents}
	return changed, nil
}

// namedReader reads a source, and names it where it has become shorter.
type namedReader struct{ *input.Source }

// ReadAt implements io.ReaderAt.
func (r namedReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.Source.ReadAt(b, off)
	if n < len(b) && errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s: %w", r.Name, input.ErrChanged)
	}
	return n, err
}
