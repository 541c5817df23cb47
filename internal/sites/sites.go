// Package sites reads the probe sites of a code space: an object, a linked file, or what a
// process has loaded of one. Records, notes, DTrace's object format and the edits of dtrace -G
// describe sites. Package sites reads them one after the other, so that each probe of a site is there once: each
// adds the sites that those before it do not have.
//
// Begin with New and Space.Read. Content tells what is at a site, Semaphore which one
// belongs to it.
package sites

import (
	"debug/elf"
	"slices"
	"strings"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/dof"
	"sdtconvert/internal/dtrace"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// Source is what a site is known from. Each site has one: a record, else a note, else DTrace's object format or an
// edit of dtrace -G. What else describes it is an export for those who do not read records.
type Source uint8

const (
	FromRecord Source = iota
	FromNote          // a note, and no record
	FromDOF           // DTrace's object format alone, in a linked file
	FromEdit          // what dtrace -G has left in an object
)

// Site is a place in code that reaches a probe.
type Site struct {
	// Entry is the record. Of other sources, Kind and Address are set alone. Address is one of
	// Space.Memory.
	linkerset.Entry
	Source Source

	// The exports of a record that say where its arguments and its semaphore are.

	Note *notes.Note        // nil if no note names the site; of several, the one of the record's probe
	Row  *notes.FunctionRow // of the table of functions; nil if the table has no row of the site, or the site has a note

	Edit  *dtrace.Edit     // of FromEdit
	probe *linkerset.Probe // nil for FromRecord
}

// Operands say where the arguments are: those of the note, or for a NOP from the start those of the table of functions; "" for others.
func (s *Site) Operands() string {
	switch {
	case s.Note != nil:
		return s.Note.Args
	case s.Row != nil:
		return s.Row.Operands
	}
	return ""
}

// Conventions say which names stubs and probe objects have, and which records are read.
type Conventions struct {
	Names       patch.Names
	ProbePrefix string // of probe objects' names; the probe id follows
	Layouts     []linkerset.Layout
}

// Space is the code of one file, and what describes its sites. It serves one goroutine at a time.
type Space struct {
	Conventions
	Object *elfreloc.Object
	File   image.Image // at the addresses that it was linked for
	Memory image.Image // what records are read from: File, or a process
	Base   uint64      // what a loader has added to the addresses of File
	Probes *linkerset.Probes

	// Read sets the rest.

	Sites         []Site             // sorted by address; at one address records come first, and then notes
	RecordLayouts []linkerset.Layout // those of Layouts that have records or faults
	Notes         []notes.Note
	DOF           []dof.FunctionProbe // of a linked file
	Faults        Faults

	rows func() ([]notes.FunctionRow, error) // of the tables of functions
}

// Faults are what could not be read of a space.
type Faults struct {
	Records []*linkerset.Fault
	Notes   []error // each an *elfreloc.Error
	// NotesUnread keeps whole sections of notes from being read.
	NotesUnread error
	DOF         []error         // each an *elfreloc.Error
	Edits       []patch.Refusal // marks of dtrace -G whose sites have none of its forms
}

// New makes the space of an object, which file shows at the addresses that it was linked for, and memory where
// a loader has put it, base bytes above; without a loader, memory is file.
func New(o *elfreloc.Object, file, memory image.Image, base uint64, opts Conventions) *Space {
	return &Space{
		Conventions: opts, Object: o, File: file, Memory: memory, Base: base,
		Probes: linkerset.NewProbes(memory, opts.ProbePrefix),
		rows: sync.OnceValues(func() ([]notes.FunctionRow, error) {
			rows, _, err := notes.ReadFunctions(o, file)
			return rows, err
		}),
	}
}

// Read finds the sites. An error keeps records, or DTrace's object format, from being read; what Read
// has found of others is in Faults.
func (s *Space) Read() error {
	if err := linkerset.CheckVersion(s.Object); err != nil {
		return err
	}
	for _, read := range []func() error{s.readRecords, s.readNotes, s.addRows, s.readDOF} {
		known := len(s.Sites)
		if err := read(); err != nil {
			return err
		}
		if len(s.Sites) > known {
			slices.SortStableFunc(s.Sites, func(a, b Site) int { return a.Address.Compare(b.Address) })
		}
	}
	return nil
}

// mostFolded bounds the sites of one address that its notes and rows are compared with. Linkers fold a few functions
// together; in a hostile file all records may be of one address.
const mostFolded = 64

// sitesAt returns the sites of an address, at most mostFolded. The sites have to be sorted.
func (s *Space) sitesAt(at image.Addr) []Site {
	first, _ := slices.BinarySearchFunc(s.Sites, at, func(site Site, at image.Addr) int { return site.Address.Compare(at) })
	end := first
	for end < min(first+mostFolded, len(s.Sites)) && s.Sites[end].Address == at {
		end++
	}
	return s.Sites[first:end]
}

// readRecords reads the records of all layouts, or of an image without section headers those to which its tables of
// functions lead.
func (s *Space) readRecords() error {
	for _, layout := range s.Layouts {
		entries, faults, err := layout.Read(s.Memory)
		if err != nil {
			return err
		}
		if len(entries)+len(faults) > 0 {
			s.RecordLayouts = append(s.RecordLayouts, layout)
		}
		s.Faults.Records = append(s.Faults.Records, faults...)
		s.Sites = slices.Grow(s.Sites, len(entries))
		for i := range entries {
			s.Sites = append(s.Sites, Site{Entry: entries[i]})
		}
	}
	if len(s.RecordLayouts) > 0 || len(s.Object.Sections) > 0 {
		return nil
	}
	rows, err := s.rows()
	for i := range rows {
		row := &rows[i]
		if !row.Recorded {
			continue
		}
		layout := linkerset.Layout{Format: row.Format}
		if !slices.Contains(s.RecordLayouts, layout) {
			s.RecordLayouts = append(s.RecordLayouts, layout)
		}
		entry, fault := layout.ReadRecord(s.Memory, row.Kind, row.Record.Add(s.Base))
		if fault != nil {
			s.Faults.Records = append(s.Faults.Records, fault)
			continue
		}
		s.Sites = append(s.Sites, Site{Entry: entry})
	}
	return err
}

// readNotes gives records their notes, those of their own probes if there are several, and adds the sites of notes
// without a record, each probe of a site once: headers of others make such notes, linkers fold functions of several
// probes together, and they leave notes of functions that they have dropped, whose addresses are not those of code.
func (s *Space) readNotes() error {
	s.Notes, s.Faults.Notes, s.Faults.NotesUnread = notes.Read(s.Object, s.File)
	type probeAt struct {
		at             image.Addr
		provider, name string
	}
	var others []Site
	seen := map[probeAt]bool{}
	for i := range s.Notes {
		n := &s.Notes[i]
		if n.Site.Undefined {
			continue
		}
		at := n.Site.Addr.Add(s.Base)
		records := s.sitesAt(at)
		for i := range records {
			site := &records[i]
			if site.Note == nil {
				site.Note = n
			} else if probe, err := s.Probe(site); err != nil {
				return err
			} else if n.Names(&probe) {
				site.Note = n
			}
		}
		if key := (probeAt{at, n.Provider, n.Name}); len(records) == 0 && !seen[key] && s.File.Executable(n.Site.Addr) {
			seen[key] = true
			others = append(others, Site{
				Entry: linkerset.Entry{Kind: arch.Probe, Address: at}, Source: FromNote, Note: n,
				probe: &linkerset.Probe{Provider: linkerset.DisplayName(n.Provider), Name: linkerset.DisplayName(n.Name)},
			})
		}
	}
	s.Sites = append(s.Sites, others...)
	return nil
}

// addRows gives records without notes their rows in the tables of functions. Only calls have notes, so tests alone
// are no reason to read the tables.
func (s *Space) addRows() error {
	isBare := func(site Site) bool { return site.Source == FromRecord && site.Note == nil }
	if !slices.ContainsFunc(s.Sites, func(site Site) bool { return isBare(site) && site.Kind == arch.Probe }) {
		return nil
	}
	rows, err := s.rows()
	for i := range rows {
		described := s.sitesAt(rows[i].Site.Add(s.Base))
		for j := range described {
			if isBare(described[j]) {
				described[j].Row = &rows[i]
			}
		}
	}
	return err
}

// readDOF adds the sites that nothing but DTrace's object format describes, or in an object what `dtrace -G` has edited.
func (s *Space) readDOF() (err error) {
	if s.Object.Type == elf.ET_REL {
		return s.readEdits()
	}
	if s.DOF, s.Faults.DOF, err = dof.Read(s.Object, s.File); err != nil {
		return err
	}
	var others []Site
	for _, p := range s.DOF {
		probe := &linkerset.Probe{Provider: p.Provider, Function: p.Function, Name: p.Name, Args: p.Args}
		for _, d := range p.Sites {
			if at := d.Addr.Add(s.Base); len(s.sitesAt(at)) == 0 {
				others = append(others, Site{Entry: linkerset.Entry{Kind: d.Kind, Address: at}, Source: FromDOF, probe: probe})
			}
		}
	}
	s.Sites = append(s.Sites, others...)
	return nil
}

func (s *Space) readEdits() error {
	edits, marks, err := dtrace.Edits(s.Object)
	s.Faults.Edits = marks
	for i := range edits {
		e := &edits[i]
		probe := linkerset.ProbeFromID(e.Stub.ID)
		at := image.Addr{Section: e.Section, Offset: e.Record}
		s.Sites = append(s.Sites, Site{Entry: linkerset.Entry{Kind: e.Stub.Kind, Address: at}, Source: FromEdit, Edit: e, probe: &probe})
	}
	return err
}

// Probe returns the probe of a site, as its record's probe object or what else describes it has it.
func (s *Space) Probe(site *Site) (linkerset.Probe, error) {
	if site.probe != nil {
		return *site.probe, nil
	}
	probe, err := s.Probes.Lookup(site.Entry.Probe)
	if row := site.Row; row != nil && row.Types != "" && len(probe.Args) == 0 {
		for i, native := range strings.Split(row.Types, "\x00") {
			probe.Args = append(probe.Args, linkerset.Argument{Index: i, Native: native})
		}
	}
	return probe, err
}
