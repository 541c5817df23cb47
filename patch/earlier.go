package patch

// An object that was converted before may have calls again, after ld -r. What is
// added to it has to be like what it holds.

import (
	"cmp"
	"fmt"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
)

// checkEarlier refuses, with an *elfreloc.Error, to add to the records of an earlier
// conversion that was made with other options.
func (p *Plan) checkEarlier() error {
	o, m := p.Scan.Object, p.Scan.Machine
	earlier, err := p.Scan.CheckEarlier()
	if err != nil || !earlier || len(p.Sites) == 0 {
		return err
	}
	if p.Scan.Settings.NoRecords {
		return earlierError(o, "without --no-records")
	}
	anchored, err := linkerset.AnchoredSections(o, m)
	if err != nil {
		return err
	}
	for i := range o.Sections {
		if _, ok := p.Scan.Settings.Layout.IsRecordSection(&o.Sections[i]); !ok {
			continue
		}
		switch {
		case anchored[i] && p.Scan.Settings.DropRelocations:
			return earlierError(o, "without --drop-relocations")
		case !anchored[i] && !p.Scan.Settings.DropRelocations:
			return earlierError(o, "with --drop-relocations")
		}
	}
	return nil
}

// CheckEarlier reports whether an object holds records of an earlier conversion,
// and refuses those that were made with another layout, or with notes where none
// are wanted now, or the other way round. Errors are of type *elfreloc.Error.
func (s *Scan) CheckEarlier() (bool, error) {
	o, m, settings := s.Object, s.Machine, &s.Settings
	earlier, err := settings.Layout.CheckEarlier(o)
	if err != nil || !earlier {
		return false, err
	}
	if symbol, err := settings.Layout.ProbeSymbol(o); err != nil || symbol != "" && !strings.HasPrefix(symbol, settings.ProbePrefix) {
		return true, cmp.Or[error](err, &elfreloc.Error{File: o.Name, Err: &PrefixError{symbol}})
	}
	recorded, tests, hasStapsdtNotes, hasDTraceNotes := false, false, notes.HasStapsdt(o), false
	for i := range o.Sections {
		sec := &o.Sections[i]
		kind, ok := settings.Layout.IsRecordSection(sec)
		recorded = recorded || ok && kind == arch.Probe
		tests = tests || ok && kind == arch.Enabled
		hasDTraceNotes = hasDTraceNotes || notes.WroteUSDT(sec)
	}
	switch {
	case hasStapsdtNotes && !settings.Notes:
		return true, earlierError(o, "with notes (--stapsdt)")
	case recorded && !hasStapsdtNotes && settings.Notes:
		return true, earlierError(o, "without notes (--no-stapsdt, or a --layout)")
	case hasDTraceNotes && !settings.DTrace:
		return true, earlierError(o, "with --dtrace")
	case recorded && !hasDTraceNotes && settings.DTrace:
		return true, earlierError(o, "without --dtrace")
	case tests && !recorded && !hasStapsdtNotes && m != nil:
		return true, settings.checkTests(o, m) // which have no notes
	case hasStapsdtNotes && settings.Notes:
		return true, settings.checkAllSemaphores(o, m)
	}
	return true, nil
}

// checkTests refuses an object whose is-enabled sites load semaphores where there are to
// be none, or the other way round. Some of those that jump do not tell.
func (settings *Settings) checkTests(o *elfreloc.Object, m arch.Machine) error {
	im, entries, err := settings.earlierRecords(o, m)
	if err != nil {
		return err
	}
	for i := range entries {
		e := &entries[i]
		if e.Kind != arch.Enabled {
			continue
		}
		left := o.Sections[e.Address.Section].Size - e.Address.Offset
		code, err := im.Bytes(e.Address, min(left, m.Traits().Site))
		if err != nil {
			return err
		}
		text := arch.Text{Code: code, Start: e.Address.Offset}
		site, ok := m.Disabled(text, e.Address.Offset, e.Kind)
		_, jumps := m.Branch(text, e.Address.Offset)
		if !ok || jumps && site.Form == arch.Tail {
			continue
		}
		_, loads := m.LoadedSemaphore(text, e.Address.Offset)
		switch {
		case (loads || jumps) && !settings.Notes:
			return earlierError(o, "with notes (--stapsdt)")
		case !loads && !jumps && settings.Notes:
			return earlierError(o, "without notes (--no-stapsdt, or a --layout)")
		}
	}
	return nil
}

func earlierError(o *elfreloc.Object, flags string) error {
	return &elfreloc.Error{File: o.Name, Err: fmt.Errorf(
		"the object was converted before %s; convert it as it was compiled, or with the same flags", flags)}
}

// A PrefixError says that the records of an object name probe objects with another prefix.
type PrefixError struct {
	Symbol string // the probe object of the first record
}

func (e *PrefixError) Error() string {
	return fmt.Sprintf("the object was converted before with another --probe-object-prefix: its records name %s; "+
		"convert it as it was compiled, or with the same flags", e.Symbol)
}

// checkAllSemaphores refuses an object whose notes name semaphores that it does not define,
// where each probe is to have one. That an earlier conversion has made more of them than are
// wanted now cannot be told: guards define them too.
func (settings *Settings) checkAllSemaphores(o *elfreloc.Object, m arch.Machine) error {
	if !settings.AllSemaphores || m == nil {
		return nil
	}
	im, entries, err := settings.earlierRecords(o, m)
	if err != nil {
		return err
	}
	recorded := make(map[image.Addr]bool, len(entries))
	for i := range entries {
		recorded[entries[i].Address] = true
	}
	notes, _, err := notes.Read(o, im)
	if err != nil {
		return err
	}
	for i := range notes {
		// Notes without a record come from other macros. No conversion changes them.
		if n := &notes[i]; recorded[n.Site.Addr] && (n.Semaphore.Null() || n.Semaphore.Undefined) {
			return earlierError(o, "without --semaphores=all")
		}
	}
	return nil
}

// earlierRecords reads the records that an object holds.
func (settings *Settings) earlierRecords(o *elfreloc.Object, m arch.Machine) (image.Image, []linkerset.Entry, error) {
	im, err := image.Open(o, m)
	if err != nil {
		return nil, nil, err
	}
	entries, _, err := settings.Layout.Read(im)
	return im, entries, err
}
