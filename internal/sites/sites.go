// Package sites reads the probe sites of a code space: an object, a linked file, or what a
// process has loaded of one. Records, notes, DTrace's object format and the edits of dtrace -G
// describe sites. Package sites merges them, so that each probe of a site is there once, with all
// that describes it.
//
// Begin with New and Space.Read. Code tells what is at a site, Semaphore which one
// belongs to it.
package sites

import (
	"debug/elf"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/dof"
	"sdtconvert/internal/dtrace"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// Source is what describes a site.
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
	Note   *notes.Note  // nil if no note names the site; of several, the one of the record's probe
	Edit   *dtrace.Edit // of FromEdit

	probe    *linkerset.Probe   // nil for FromRecord
	function *notes.FunctionRow // of a record without a note; nil if no table of functions has the site
}

// Operands say where the arguments are: those of the note, or for a NOP from the start those of the table of functions; "" for others.
func (s *Site) Operands() string {
	switch {
	case s.Note != nil:
		return s.Note.Args
	case s.function != nil:
		return s.function.Operands
	}
	return ""
}

// HasTable reports whether a site without a note is in a table of functions.
func (s *Site) HasTable() bool { return s.function != nil }

// IsCall reports whether a site without a note is known to have been a call, whose arguments are where those of calls are.
func (s *Site) IsCall() bool { return s.function != nil && !s.function.IsNop }

// Options say which names stubs and probe objects have, and which records are read.
type Options struct {
	Names       patch.Names
	ProbePrefix string // of probe objects' names; the probe id follows
	Layouts     []linkerset.Layout
}

// Space is the code of one file, and what describes its sites. It serves one goroutine at a time.
type Space struct {
	Options
	Object *elfreloc.Object
	File   image.Image // at the addresses that it was linked for
	Memory image.Image // what records are read from: File, or a process
	Base   uint64      // what a loader has added to the addresses of File
	Probes *linkerset.Probes

	// Read sets the rest.

	Sites         []Site             // sorted by address; at one address records come first, and then notes
	RecordLayouts []linkerset.Layout // those of Layouts that have records or faults
	Notes         []notes.Note
	Functions     []notes.FunctionRow // if some record has no note
	DOF           []dof.FunctionProbe // of a linked file
	Faults        Faults

	functionsRead bool
}

// Faults are what could not be read of a space.
type Faults struct {
	Records []*linkerset.Fault
	Notes   []error // each an *elfreloc.Error
	// NotesUnread keeps whole sections of notes from being read.
	NotesUnread error
	Functions   []error         // of tables of functions, each an *elfreloc.Error
	DOF         []error         // each an *elfreloc.Error
	Edits       []patch.Refusal // marks of dtrace -G whose sites have none of its forms
}

// New makes the space of an object, which file shows at the addresses that it was linked for, and memory where
// a loader has put it, base bytes above; without a loader, memory is file.
func New(o *elfreloc.Object, file, memory image.Image, base uint64, opts Options) *Space {
	return &Space{
		Options: opts, Object: o, File: file, Memory: memory, Base: base,
		Probes: linkerset.NewProbes(memory, opts.ProbePrefix),
	}
}

// Read finds the sites. An error keeps records, or DTrace's object format, from being read; what Read
// has found of others is in Faults.
func (s *Space) Read() error {
	if err := linkerset.CheckVersion(s.Object); err != nil {
		return err
	}
	if err := s.readRecords(); err != nil {
		return err
	}
	s.Notes, s.Faults.Notes, s.Faults.NotesUnread = notes.Read(s.Object, s.File)
	if err := s.addNotes(); err != nil {
		return err
	}
	if err := s.addFunctions(); err != nil {
		return err
	}
	if err := s.readDOF(); err != nil {
		return err
	}
	s.sort()
	return nil
}

// readRecords reads the records of all layouts.
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
	if len(s.RecordLayouts) == 0 && len(s.Object.Sections) == 0 {
		if err := s.readLoadedRecords(); err != nil {
			return err
		}
	}
	s.sort()
	return nil
}

// readFunctions reads the tables of functions, once.
func (s *Space) readFunctions() (err error) {
	if !s.functionsRead {
		s.functionsRead = true
		s.Functions, s.Faults.Functions, err = notes.ReadFunctions(s.Object, s.File)
	}
	return err
}

// addFunctions gives records that have lost their notes, or never had any, their rows in the tables of functions.
func (s *Space) addFunctions() error {
	isBare := func(site Site) bool { return site.Source == FromRecord && site.Note == nil && site.Kind == arch.Probe }
	if !slices.ContainsFunc(s.Sites, isBare) {
		return nil
	}
	if err := s.readFunctions(); err != nil || len(s.Functions) == 0 {
		return err
	}
	rows := make(map[image.Addr]*notes.FunctionRow, len(s.Functions))
	for i := range s.Functions {
		rows[s.Functions[i].Site.Add(s.Base)] = &s.Functions[i]
	}
	for i := range s.Sites {
		if site := &s.Sites[i]; isBare(*site) {
			site.function = rows[site.Address]
		}
	}
	return nil
}

// readLoadedRecords reads the records of an image without section headers, to which its tables of functions lead.
func (s *Space) readLoadedRecords() (err error) {
	if err := s.readFunctions(); err != nil {
		return err
	}
	for i := range s.Functions {
		f := &s.Functions[i]
		if !f.Recorded {
			continue
		}
		layout := linkerset.Layout{Format: f.Format}
		if !slices.Contains(s.RecordLayouts, layout) {
			s.RecordLayouts = append(s.RecordLayouts, layout)
		}
		entry, fault := layout.ReadRecord(s.Memory, f.Kind, f.Record.Add(s.Base))
		if fault != nil {
			s.Faults.Records = append(s.Faults.Records, fault)
			continue
		}
		s.Sites = append(s.Sites, Site{Entry: entry, function: f})
	}
	return nil
}

// sort sorts the sites by address, stably.
func (s *Space) sort() {
	slices.SortStableFunc(s.Sites, func(a, b Site) int { return a.Address.Compare(b.Address) })
}

// noteKey identifies what a note says: a probe at an address.
type noteKey struct {
	at             image.Addr
	provider, name string
}

// addNotes gives records their notes, and adds the sites of notes without a record, each probe of a site
// once: headers of others make notes without records, linkers fold functions of several
// probes together, and they leave notes of functions that they have dropped, whose addresses
// are not those of code.
func (s *Space) addNotes() error {
	if len(s.Notes) == 0 {
		return nil
	}
	recorded := make(map[image.Addr]int, len(s.Sites)) // the first record of each address
	for i := len(s.Sites) - 1; i >= 0; i-- {
		recorded[s.Sites[i].Address] = i
	}
	var others []Site
	seen := map[noteKey]bool{}
	for i := range s.Notes {
		n := &s.Notes[i]
		if n.Site.Undefined {
			continue
		}
		at := n.Site.Addr.Add(s.Base)
		key := noteKey{at, n.Provider, n.Name}
		if first, ok := recorded[at]; ok {
			if err := s.addNote(s.Sites[first:], n); err != nil {
				return err
			}
		} else if !seen[key] && s.File.Executable(n.Site.Addr) {
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

// mostFolded is how many records of one address are compared with each of its notes. Linkers fold a few functions
// together; in a hostile file all records may be of one address.
const mostFolded = 64

// addNote gives a note to the records at the beginning of a list that are of one address: to those without
// one, and to those of the note's own probe.
func (s *Space) addNote(records []Site, n *notes.Note) error {
	for i := range records[:min(len(records), mostFolded)] {
		site := &records[i]
		if site.Address != records[0].Address {
			break
		}
		if site.Note == nil {
			site.Note = n
			continue
		}
		probe, err := s.Probe(site)
		if err != nil {
			return err
		}
		if probe.Provider == linkerset.DisplayName(n.Provider) && probe.Name == linkerset.DisplayName(n.Name) {
			site.Note = n
		}
	}
	return nil
}

// readDOF adds the sites that nothing but DTrace's object format describes, or in an object what `dtrace -G` has edited.
func (s *Space) readDOF() (err error) {
	if s.Object.Type == elf.ET_REL {
		return s.readEdits()
	}
	if s.DOF, s.Faults.DOF, err = dof.Read(s.Object, s.File); err != nil || len(s.DOF) == 0 {
		return err
	}
	described := make(map[image.Addr]bool, len(s.Sites))
	for i := range s.Sites {
		described[s.Sites[i].Address] = true
	}
	for _, p := range s.DOF {
		probe := &linkerset.Probe{Provider: p.Provider, Function: p.Function, Name: p.Name, Args: p.Args}
		for _, d := range p.Sites {
			if at := d.Addr.Add(s.Base); !described[at] {
				s.Sites = append(s.Sites, Site{Entry: linkerset.Entry{Kind: d.Kind, Address: at}, Source: FromDOF, probe: probe})
			}
		}
	}
	return nil
}

func (s *Space) readEdits() error {
	edits, marks, err := dtrace.Edits(s.Object)
	if err != nil {
		return err
	}
	s.Faults.Edits = marks
	for i := range edits {
		e := &edits[i]
		probe := linkerset.ProbeFromID(e.Stub.ID)
		at := image.Addr{Section: e.Section, Offset: e.Record}
		s.Sites = append(s.Sites, Site{Entry: linkerset.Entry{Kind: e.Stub.Kind, Address: at}, Source: FromEdit, Edit: e, probe: &probe})
	}
	return nil
}

// Probe returns the probe of a site, as its record's probe object or what else describes it has it.
func (s *Space) Probe(site *Site) (linkerset.Probe, error) {
	if site.probe != nil {
		return *site.probe, nil
	}
	probe, err := s.Probes.Lookup(site.Entry.Probe)
	if f := site.function; f != nil && f.Types != "" && len(probe.Args) == 0 {
		for i, native := range strings.Split(f.Types, "\x00") {
			probe.Args = append(probe.Args, linkerset.Argument{Index: i, Native: native})
		}
	}
	return probe, err
}

// HasSource returns a function that reports whether a site has a source.
func HasSource(source Source) func(Site) bool {
	return func(s Site) bool { return s.Source == source }
}
