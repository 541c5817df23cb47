package patch

// DTrace's object format (DOF) names a site by a symbol of its function and a distance,
// and is made anew from all objects of a link each time one of them changes. So what
// `dtrace -G` does to an object has to be found again: relocations of sites stay, as ones
// that do nothing, against symbols of their stubs' names.
//
// DTrace makes these symbols absolute. GNU ld links no such object into what may be loaded
// anywhere, and a program whose other objects call a stub links, and calls address 0. Here
// they are weak, hidden and undefined, or what a system's linker ignores: linkers drop
// them, and others that call a stub still need it.

import (
	"debug/elf"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/resolve"
)

// DOF has sites disabled as `dtrace -G` disables them. There are no records then, no
// notes and no semaphores.
type DOF struct {
	// Visibility is the visibility of functions' aliases: STV_HIDDEN, or a value of the system's own.
	Visibility byte
	// Directory is the directory from which absolute paths of objects count for the numbers of
	// aliases, so that these are the same wherever a tree is built. "" takes whole paths.
	Directory string
	// Ignored is the section index of symbols that a system's linker passes over (one of
	// the negative ones, as in elfreloc.Symbol), 0 for none: stubs get it then.
	Ignored int
}

// DOFSite is where a site is as DOF tells it.
type DOFSite struct {
	Stub     *Stub
	Function string // that holds it, as its symbol has it
	Alias    string // a global symbol at the same place
	Offset   uint32 // of the recorded instruction, from there, in bytes

	in       resolve.Function
	hasAlias bool // by an earlier run
}

// decodeDOF decodes a call, or one that an earlier run has disabled.
func (p *Plan) decodeDOF(ref *Reference) func(t arch.Text, relocs []elfreloc.Relocation) (arch.Site, error) {
	m := p.Scan.Machine.(arch.DOFMachine)
	if ref.Reloc.Type != m.Traits().None {
		return m.Decode
	}
	return func(t arch.Text, _ []elfreloc.Relocation) (arch.Site, error) {
		site, ok := m.DisabledDOF(t, ref.Reloc.Offset, ref.Stub.Kind)
		if !ok {
			return site, arch.Refuse("compile it again", "a mark of code that is not a site of an earlier dtrace -G")
		}
		return site, nil
	}
}

// disableDOF gives the form of a site that DTrace arms, and finds its function.
func (p *Plan) disableDOF(ref *Reference, site arch.Site) (arch.Change, error) {
	change, err := p.Scan.Machine.(arch.DOFMachine).DisableDOF(site, ref.Stub.Kind)
	if err != nil {
		return change, err
	}
	if _, ok, err := p.functionOf(ref.Relocs.Target, change.RecordedOffset); err != nil || ok {
		return change, err
	}
	return change, arch.Refuse("give it a symbol with .type and .size", "code of no function, which DTrace has no name for")
}

// functionOf finds the function with a symbol that holds a place.
func (p *Plan) functionOf(section int, off uint64) (resolve.Function, bool, error) {
	functions, err := p.Scan.Functions()
	if err != nil {
		return resolve.Function{}, false, err
	}
	f, ok := functions.Lookup(section, off)
	return f, ok && f.Symbol != 0, nil
}

// DOFSites returns the sites of a plan that has Options.DOF and no refusals, in its
// order, those of earlier runs too. Tests are left out where no kernel arms any.
func (p *Plan) DOFSites() ([]DOFSite, error) {
	var sites []DOFSite
	a := p.aliases()
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Stub.Kind == arch.Enabled && !p.Scan.Machine.Traits().DOF.Tests {
			continue
		}
		in, ok, err := p.functionOf(s.Relocs.Target, s.Change.RecordedOffset)
		if err != nil {
			return nil, err
		}
		distance := s.Change.RecordedOffset - in.Start
		if !ok || uint64(uint32(distance)) != distance {
			return nil, p.Scan.Object.OffsetError(s.Relocs.Target, s.Change.RecordedOffset, fmt.Errorf("is too far from the start of its function"))
		}
		alias, err := a.name(in)
		if err != nil {
			return nil, err
		}
		sites = append(sites, DOFSite{
			Stub: s.Stub, Function: in.Raw, Alias: alias, Offset: uint32(distance), in: in, hasAlias: a.lookup(in) != "",
		})
	}
	return sites, nil
}

// weakenStubs makes symbols of the stubs that linkers pass over.
func (p *Plan) weakenStubs(e *elfreloc.Edit) {
	for _, stub := range p.Scan.Stubs {
		old := p.Scan.symbols().At(int(stub.Symbol))
		if stub.Defined || old.Bind == elf.STB_WEAK {
			continue
		}
		retired := elfreloc.Symbol{Name: stub.Name, Bind: elf.STB_GLOBAL, Section: p.Scan.Options.DOF.Ignored}
		if retired.Section == 0 {
			retired.Bind, retired.Other = elf.STB_WEAK, old.Other&^3|byte(elf.STV_HIDDEN)
		}
		e.SetSymbol(stub.Symbol, retired)
	}
}

// addAliases adds the aliases that an object does not have.
func (p *Plan) addAliases(e *elfreloc.Edit) error {
	sites, err := p.DOFSites()
	added := map[image.Addr]bool{}
	for _, s := range sites {
		at := image.Addr{Section: s.in.Section, Offset: s.in.Start}
		if s.hasAlias || added[at] {
			continue
		}
		added[at] = true
		bind := elf.STB_GLOBAL
		if p.Scan.symbols().At(s.in.Symbol).Bind == elf.STB_WEAK {
			bind = elf.STB_WEAK
		}
		e.AddSymbol(elfreloc.Symbol{
			Name: s.Alias, Bind: bind, Type: elf.STT_FUNC, Other: p.Scan.Options.DOF.Visibility, Section: s.in.Section, Value: s.in.Start, Size: s.in.Size,
		})
	}
	return err
}

// AliasPrefix is "$dtrace", what the aliases of functions begin with, by which DOF refers to them; a
// number, ".", and the function's name follow.
const AliasPrefix = "$dtrace"

// aliases are the names that DOF knows functions of an object by.
type aliases struct {
	plan *Plan
	have map[image.Addr]string // those that an earlier run has added, by the place of the function
	id   string                // of the object, "" until it is needed
}

func (p *Plan) aliases() *aliases {
	a := &aliases{plan: p, have: map[image.Addr]string{}}
	syms := p.Scan.symbols()
	for i, s := range syms.WithPrefix(AliasPrefix) {
		if i >= syms.FirstGlobal() && s.Defined() && len(s.Name) > len(AliasPrefix) {
			a.have[image.Addr{Section: s.Section, Offset: s.Value}] = s.Name
		}
	}
	return a
}

// lookup returns the alias that the object has of a function, "" for none.
func (a *aliases) lookup(f resolve.Function) string {
	return a.have[image.Addr{Section: f.Section, Offset: f.Start}]
}

// name returns the alias of a function. That of a weak function is the same in all objects, as
// linkers keep one of them: what they keep defines it.
func (a *aliases) name(f resolve.Function) (name string, err error) {
	if name := a.lookup(f); name != "" {
		return name, nil
	}
	if a.plan.Scan.symbols().At(f.Symbol).Bind == elf.STB_WEAK {
		return AliasPrefix + "." + f.Raw, nil
	}
	if a.id == "" {
		if a.id, err = objectID(a.plan.Scan.Object, a.plan.Scan.Options.DOF.Directory); err != nil {
			return "", err
		}
	}
	return AliasPrefix + a.id + "." + f.Raw, nil
}

// objectID returns a number for an object that others of its link do not have: of its path
// from a directory, and of what is in it. DTrace takes the whole path, which differs from
// machine to machine; without any, copies of an object in two directories had one number.
func objectID(o *elfreloc.Object, directory string) (string, error) {
	h := fnv.New64a()
	io.WriteString(h, pathFrom(directory, o.Name))
	for off := int64(0); off < o.Size(); off += elfreloc.BlockSize {
		block, err := o.ReadFile(off, min(elfreloc.BlockSize, o.Size()-off))
		if err != nil {
			return "", err
		}
		h.Write(block)
	}
	return fmt.Sprint(h.Sum64()), nil
}

// pathFrom returns a path from a directory. It is not opened.
func pathFrom(directory, path string) string {
	if filepath.IsAbs(path) && directory != "" {
		if relative, err := filepath.Rel(directory, path); err == nil {
			path = relative
		}
	}
	return filepath.ToSlash(filepath.Clean(path))
}

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
	s, err := Find(o, m, Options{Names: DTraceNames(), NoRecords: true, DOF: &DOF{}})
	if err != nil {
		return nil, nil, err
	}
	p, err := NewPlan(s)
	if err != nil {
		return nil, nil, err
	}
	a, none := p.aliases(), m.Traits().None
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

// sitesDisabledByDTrace returns the relocations of sites that `dtrace -G` has disabled, for a plan
// that is not for DOF: they call no stub.
func (p *Plan) sitesDisabledByDTrace() (map[image.Addr]bool, error) {
	if p.Scan.Options.DOF != nil || !p.Scan.hasMarks() {
		return nil, nil
	}
	edits, _, err := DOFEdits(p.Scan.Object)
	disabled := map[image.Addr]bool{}
	for i := range edits {
		disabled[image.Addr{Section: edits[i].Section, Offset: edits[i].Mark}] = true
	}
	return disabled, err
}
