// Package probedefs collects what the files of a run say of probes, for those of them that
// use a probe and do not define it: which provider and name it has, and which arguments.
//
// An ID tells provider and name of most probes, but not where it has a module or a
// function in it, as that of SDT_PROBE_DEFINE(icmp, , unreach, pkt__receive): then only
// the struct sdt_probe does, which one source defines. So the files of a run are looked
// at when an object first asks for a probe; a conversion changes no definition. Of those whose names hold no probe object, nothing but
// the names is read; and what cannot be read says nothing: its conversion or
// link reports it.
package probedefs

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/input"
	"sdtconvert/internal/parallel"
	"sdtconvert/linkerset"
)

// Options say how files are read.
type Options struct {
	ProbePrefix string // of probe objects' names; not ""
	Jobs        int    // threads, at least 1
	FollowThin  bool   // read files outside of the directory of a thin archive
}

// Table is what files say about probes. It implements patch.ProbeSource, and reads the files
// when it is first asked.
type Table struct {
	files   []string
	options Options
	read    sync.Once
	probes  map[string]*definition
}

// definition is what a definition of a probe object says.
type definition struct {
	probe    linkerset.Probe
	file     string // or member of an archive
	rank     rank
	conflict *definition // in another file of the rank that says something else, or nil
}

// rank is what counts where several files define a probe: what is certainly a part of
// the program is before what a linker takes only if it is not defined elsewhere.
type rank uint8

const (
	object  rank = iota // a file of its own
	member              // of an archive
	library             // shared
)

// New returns the table of files: objects, archives and shared libraries. The order of the files
// makes no difference, but for what an error says.
func New(files []string, o Options) *Table {
	return &Table{files: files, options: o, probes: map[string]*definition{}}
}

// readFiles fills the table.
func (t *Table) readFiles() {
	parallel.InOrder(len(t.files), t.options.Jobs, func(i int) []definition { return read(t.files[i], t.options) }, func(_ int, found []definition) {
		for i := range found {
			t.add(&found[i])
		}
	})
}

func (t *Table) add(d *definition) {
	switch first := t.probes[d.probe.ID]; {
	case first == nil || d.rank < first.rank:
		t.probes[d.probe.ID] = d
	case d.rank == first.rank && first.conflict == nil && !same(&first.probe, &d.probe):
		first.conflict = d
	}
}

func same(a, b *linkerset.Probe) bool {
	return a.Provider == b.Provider && a.Module == b.Module && a.Function == b.Function && a.Name == b.Name && slices.Equal(a.Args, b.Args)
}

// Probe implements patch.ProbeSource. That definitions disagree is an error of this
// call alone.
func (t *Table) Probe(id string) (probe linkerset.Probe, ok bool, err error) {
	t.read.Do(t.readFiles)
	d := t.probes[id]
	if d == nil {
		return linkerset.Probe{}, false, nil
	}
	if d.conflict != nil {
		return linkerset.Probe{}, false, fmt.Errorf("probe %q is %s in %s and %s in %s; convert what belongs together by itself", id, describe(d), d.file, describe(d.conflict), d.conflict.file)
	}
	return d.probe, true, nil
}

// describe tells a definition from one that disagrees with it.
func describe(d *definition) string {
	var types []string
	for _, a := range d.probe.Args {
		types = append(types, a.Native)
	}
	p := &d.probe
	return fmt.Sprintf("%s:%s:%s:%s(%s)", p.Provider, p.Module, p.Function, p.Name, strings.Join(types, ", "))
}

// read reads the definitions of a file. What cannot be read has none.
func read(file string, o Options) (found []definition) {
	input.Each(file, input.Options{FollowThin: o.FollowThin}, func(src *input.Source) error {
		if typ, err := src.Type(); err != nil || typ != input.ELFFile {
			return nil
		}
		obj, err := src.Image()
		if err != nil {
			return nil
		}
		if objectProbes, err := definitions(obj, o.ProbePrefix); err == nil {
			found = append(found, objectProbes...)
		}
		return nil
	})
	return found
}

// definitions returns what the structures of probe objects say that others can name.
func definitions(o *input.Object, prefix string) ([]definition, error) {
	if o.Machine == nil {
		return nil, nil
	}
	syms, rank, err := symbols(o, prefix)
	if err != nil || syms == nil {
		return nil, err
	}
	var found []definition
	var probes *linkerset.Probes
	for i, s := range syms.WithPrefix(prefix) {
		if i < syms.FirstGlobal() || !s.Defined() || s.Type == elf.STT_FUNC {
			continue
		}
		if probes == nil {
			im, err := image.Open(o.Object, o.Machine)
			if err != nil {
				return nil, err
			}
			probes = linkerset.NewProbes(im, prefix)
		}
		ref := image.Ref{Symbol: s.Name, Addr: image.Addr{Offset: s.Value}}
		if rank != library {
			ref.Section = s.Section
		}
		probe, err := probes.Lookup(ref)
		if err != nil {
			return nil, err
		}
		if probe.FromStruct { // names may be in the memory of the file
			found = append(found, definition{file: o.Source.Name, rank: rank, probe: linkerset.Probe{
				ID: strings.Clone(s.Name[len(prefix):]), Provider: strings.Clone(probe.Provider), Module: strings.Clone(probe.Module),
				Function: strings.Clone(probe.Function), Name: strings.Clone(probe.Name), Args: probe.Args, FromStruct: true,
			}})
		}
	}
	return found, nil
}

// symbols returns the symbols that other files can name, nil where none is of a probe
// object.
func symbols(o *input.Object, prefix string) (*elfreloc.Symbols, rank, error) {
	if o.Type == elf.ET_DYN && o.Source.Member == nil {
		syms, err := o.DynamicSymbols()
		return syms, library, err
	}
	if o.Type != elf.ET_REL {
		return nil, object, nil
	}
	found, err := o.NamesContain([][]byte{[]byte(prefix)})
	if err != nil || !found {
		return nil, object, err
	}
	syms, err := o.Symbols()
	if o.Source.Member != nil {
		return syms, member, err
	}
	return syms, object, err
}
