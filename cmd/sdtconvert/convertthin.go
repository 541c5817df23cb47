package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
	"sdtconvert/internal/replace"
)

// thinArchive converts the files that are members of a thin archive and, once they
// are converted, brings the archive's headers and index up to date. Linkers read the
// files and not the sizes in the headers, so that every moment in between is one that
// a build can start from; so is the end of an interrupted run, which another one
// completes.
//
// All members are converted in memory first, and again to be written: if one of them
// cannot be, none is, and no more than one is in memory.
func (c *converter) thinArchive(l *input.Archive, r *result) error {
	t := newThinChanges(c, l, r)
	all := &outcome{target: l.File.Path}
	failed, err := c.members(l, r, func(src *input.Source, done *outcome) error {
		all.lines.Write(done.lines.Bytes())
		return t.note(src, done)
	})
	if err != nil {
		return err
	}
	if failed {
		return errReported
	}
	if err := t.rehearse(); err != nil {
		return err
	}
	if c.dryRun {
		return c.put(l.File, all, r)
	}
	e := l.Edit()
	writeErr := t.write(e)
	r.converted()
	if e.Changed() {
		if all.out, err = e.Save(); err != nil {
			return errors.Join(writeErr, err)
		}
	}
	if writeErr != nil {
		all.lines.Reset() // they are of all members
	}
	return errors.Join(writeErr, c.put(l.File, all, r))
}

// thinChanges are the members of a thin archive that change, or have done so since
// their sizes were written into it.
type thinChanges struct {
	*converter
	l       *input.Archive
	r       *result
	members []thinChange
	done    map[string]archive.Change // by path: a file may be in the archive twice
}

func newThinChanges(c *converter, l *input.Archive, r *result) *thinChanges {
	return &thinChanges{converter: c, l: l, r: r, done: make(map[string]archive.Change)}
}

type thinChange struct {
	*archive.Member
	name, path string
	convert    bool           // or somebody has changed it
	planned    archive.Change // but for symbols that the conversion will add
}

func (t *thinChanges) note(src *input.Source, done *outcome) (err error) {
	m := thinChange{Member: src.Member, name: src.Name, path: src.File.Path, convert: done.out != nil}
	switch {
	case m.convert && m.Origin != 0:
		return fmt.Errorf("%s: is in another archive; convert %s and collect this archive anew, or convert it to another file", m.name, m.path)
	case m.convert:
		m.planned.Output = &elfreloc.Output{Size: done.out.Size}
	case m.Origin == 0 && done.object != nil && src.Size != m.Size:
		if m.planned, err = t.asItIs(src, done.object.Object); err != nil {
			return err
		}
	default:
		return nil
	}
	t.members = append(t.members, m)
	return nil
}

// asItIs is the change of a member that somebody has changed.
func (t *thinChanges) asItIs(src *input.Source, o *elfreloc.Object) (change archive.Change, err error) {
	change = archive.Change{Output: &elfreloc.Output{Size: src.Size}, Anew: true}
	if t.l.HasIndex() {
		change.After, err = archive.Symbols(o)
	}
	return change, err
}

// rehearse finds out whether the archive can be brought up to date, before any
// member is written.
func (t *thinChanges) rehearse() error {
	e := t.l.Edit()
	for i := range t.members {
		e.Replace(t.members[i].Member, t.members[i].planned)
	}
	if !e.Changed() {
		return nil
	}
	_, err := e.Save()
	return err
}

// write converts the files, and collects what changes in the archive. An error leaves
// those converted that come before it, and e says so.
func (t *thinChanges) write(e *archive.Edit) error {
	converted := 0
	for i := range t.members {
		m := &t.members[i]
		change := m.planned
		if m.convert {
			var err error
			if change, err = t.convertFile(m); err != nil {
				t.r.changed = t.r.changed[:min(converted, len(t.r.changed))]
				return err
			}
			converted++
		}
		e.Replace(m.Member, change)
	}
	return nil
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

// tryFile is one attempt to.
func (t *thinChanges) tryFile(m *thinChange) (change archive.Change, err error) {
	in, err := input.Open(m.path)
	if err != nil {
		return change, err
	}
	defer in.Close()
	src := &input.Source{Name: m.name, Size: in.Size(), File: in, Member: m.Member}
	done := &outcome{target: m.path}
	defer func() { done.draft.Discard() }()
	if err := t.object(src, done, newResult(m.name, false)); err != nil {
		return change, err
	}
	switch {
	case done.object == nil:
		return change, fmt.Errorf("%s: %w", m.name, input.ErrChanged)
	case done.out == nil: // somebody else has converted it
		return t.asItIs(src, done.object.Object)
	}
	if change, err = t.change(src, t.l.Archive, done); err != nil {
		return change, err
	}
	err = t.files.File(m.path, in, done.out, replace.Options{Draft: done.draft, Workers: t.jobs, KeepTime: t.keepTime})
	change.Output = &elfreloc.Output{Size: done.out.Size} // the rest is written
	return change, err
}

// collect makes a regular archive of a thin one, with its members converted inside.
func (c *converter) collect(l *input.Archive, target string, r *result) error {
	all := &outcome{target: target}
	to := l.Collect()
	failed, err := c.members(l, r, func(src *input.Source, done *outcome) error {
		all.lines.Write(done.lines.Bytes())
		name := filepath.Base(src.Member.Name)
		if src.Inner != nil {
			name = src.Inner.Name
		}
		if done.out == nil {
			return to.Add(src.Member, name, archive.Change{Output: c.fileLater(src, src.Size, false).output()})
		}
		change, err := c.change(src, l.Archive, done)
		if err != nil {
			return err
		}
		change.Output = c.fileLater(src, done.out.Size, true).output()
		return to.Add(src.Member, name, change)
	})
	if err != nil {
		return err
	}
	if failed {
		return errReported
	}
	if all.out, err = to.Save(); err != nil {
		return err
	}
	return c.put(l.File, all, r)
}
