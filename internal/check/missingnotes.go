package check

import (
	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/stapnotes"
)

// notesBySite finds notes by what they name, of several the first.
func notesBySite(notes []stapnotes.Note) map[image.Addr]*stapnotes.Note {
	at := make(map[image.Addr]*stapnotes.Note, len(notes))
	for i := range notes {
		if n := &notes[i]; !n.Site.Undefined && at[n.Site.Addr] == nil {
			at[n.Site.Addr] = n
		}
	}
	return at
}

// missingNotes finds the recorded probe calls without a note, in a file where each is to
// have one: because the user says so, or as others of its records have one.
func (l *looker) missingNotes() error {
	if l.link.unread[l.scope()] {
		return nil
	}
	l.wantsNotes = l.set.opts.RequireNotes
	for i := range l.entries {
		l.wantsNotes = l.wantsNotes || l.entries[i].Kind == arch.Probe && l.noteAt[l.entries[i].Site] != nil
	}
	if !l.wantsNotes {
		return nil
	}
	for i := range l.entries {
		e := &l.entries[i]
		if e.Kind != arch.Probe || l.noteAt[e.Site] != nil || i > 0 && l.entries[i-1].Site == e.Site {
			continue
		}
		probe, err := l.probes.Of(e.Probe)
		if err != nil {
			return err
		}
		if err := l.add(MissingNote, e.Site, nameOf(probe), "this site has a record and no note, so tracers do not find it; convert its object with --stapsdt"); err != nil {
			return err
		}
	}
	return nil
}
