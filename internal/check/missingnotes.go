package check

import (
	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/stapnotes"
)

// noteAddresses are the addresses of code that notes name.
func noteAddresses(notes []stapnotes.Note) map[image.Addr]bool {
	at := make(map[image.Addr]bool, len(notes))
	for i := range notes {
		if !notes[i].Site.Undefined {
			at[notes[i].Site.Addr] = true
		}
	}
	return at
}

// missingNotes finds the recorded probe calls without a note, in a file where each is to
// have one: because the user says so, or as others of its records have one.
func (l *looker) missingNotes() error {
	l.wantsNotes = l.set.opts.RequireNotes
	for i := range l.entries {
		l.wantsNotes = l.wantsNotes || l.entries[i].Kind == arch.Probe && l.hasNote[l.entries[i].Site]
	}
	if !l.wantsNotes {
		return nil
	}
	for i := range l.entries {
		e := &l.entries[i]
		if e.Kind != arch.Probe || l.hasNote[e.Site] || i > 0 && l.entries[i-1].Site == e.Site {
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
