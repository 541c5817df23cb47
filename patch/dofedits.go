package patch

import (
	"debug/elf"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
)

// DTraceNames returns the stubs that `dtrace -G` edits: those that the headers of every
// `dtrace -h` declare (libdtrace, dt_link.c), and those of include/sdt.h.
func DTraceNames() Names {
	n := DefaultNames()
	n.Prefixes = append([]string{"__dtrace_"}, n.Prefixes...)
	n.EnabledPrefixes = append([]string{"__dtraceenabled_"}, n.EnabledPrefixes...)
	return n
}

// DOFEdit is a site that `dtrace -G` has disabled in an object.
type DOFEdit struct {
	Stub     *Stub
	Section  int
	Mark     uint64    // the offset in Section of the relocation that is left
	Site     arch.Site // as it is now
	Record   uint64    // the offset in Section of the instruction that kernels arm
	Function string    // that holds it, as its symbol has it
	Alias    string    // the symbol by which DOF refers to the function, "" for Function
}

// DOFEdits finds the sites that `dtrace -G` has disabled in an object, and the marks of such
// sites that are none. An object without aliases of functions has neither.
func DOFEdits(o *elfreloc.Object) (edits []DOFEdit, marks []Refusal, err error) {
	m, ok := machines.Lookup(o.ABI()).(arch.DOFMachine)
	if !ok || o.Type != elf.ET_REL {
		return nil, nil, nil
	}
	if found, err := o.NamesContain([][]byte{[]byte(AliasPrefix)}); err != nil || !found {
		return nil, nil, err
	}
	names := DTraceNames()
	s, err := Find(o, m, names)
	if err != nil {
		return nil, nil, err
	}
	p, err := NewPlan(s, Options{Names: names, NoRecords: true, DOF: &DOF{}})
	if err != nil {
		return nil, nil, err
	}
	a, err := p.aliases()
	if err != nil {
		return nil, nil, err
	}
	none := m.Traits().None
	for i := range p.Sites {
		site := &p.Sites[i]
		if site.Reloc.Type != none {
			continue
		}
		f, _, err := p.functionOf(site.Relocs.Target, site.Change.RecordedOffset)
		if err != nil {
			return nil, nil, err
		}
		edits = append(edits, DOFEdit{
			Stub: site.Stub, Section: site.Relocs.Target, Mark: site.Reloc.Offset, Site: site.Change.Site, Record: site.Change.RecordedOffset,
			Function: f.Raw, Alias: a.lookup(f),
		})
	}
	marks = slices.DeleteFunc(slices.Clone(p.Refused), func(r Refusal) bool { return r.Reloc.Type != none })
	return edits, marks, nil
}

// editedByDTrace returns the relocations of sites that `dtrace -G` has disabled, for a plan
// that is not for DOF: they call no stub.
func (p *Plan) editedByDTrace() (map[image.Addr]bool, error) {
	if p.Options.DOF != nil || !p.Scan.hasMarks() {
		return nil, nil
	}
	edits, _, err := DOFEdits(p.Scan.Object)
	edited := map[image.Addr]bool{}
	for i := range edits {
		edited[image.Addr{Section: edits[i].Section, Offset: edits[i].Mark}] = true
	}
	return edited, err
}
