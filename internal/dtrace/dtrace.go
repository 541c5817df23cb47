// Package dtrace does to objects what `dtrace -G` does, and finds what it has done.
//
// DTrace's object format (DOF) names a site by a symbol of its function and a distance,
// and is made anew from all objects of a link each time one of them changes. So what
// `dtrace -G` does to an object has to be found again: relocations of sites stay, as ones
// that do nothing, against symbols of their stubs' names.
//
// DTrace makes these symbols absolute. GNU ld links no such object into what may be loaded
// anywhere, and a program whose other objects call a stub links, and calls address 0. Here
// they are weak, hidden and undefined, or what a system's linker ignores: linkers drop
// them, and others that call a stub still need it.
package dtrace

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
	"sdtconvert/internal/dof"
	"sdtconvert/patch"
	"sdtconvert/resolve"
)

// Aliases say how DTrace's object format refers to functions.
type Aliases struct {
	// Visibility is the visibility of the aliases: STV_HIDDEN, or a value of the system's own.
	Visibility byte
	// Directory is the directory from which absolute paths of objects count for the numbers of
	// aliases, so that these are the same wherever a tree is built. "" takes whole paths.
	Directory string
	// Ignored is the section index of symbols that a system's linker passes over (one of
	// the negative ones, as in elfreloc.Symbol), 0 for none: stubs get it then.
	Ignored int
}

// Options returns the options of conversions that disable sites as DTrace does.
func (a Aliases) Options() patch.Options {
	return patch.Options{Names: Names(), NoRecords: true, DTraceForms: true, Also: a.apply}
}

// apply adds the aliases that an object lacks, and makes symbols of the stubs that linkers pass over.
func (a Aliases) apply(p *patch.Plan, e *elfreloc.Edit) error {
	if len(p.Sites) == 0 {
		return nil
	}
	if err := a.addAliases(p, e); err != nil {
		return err
	}
	return a.weakenStubs(p, e)
}

// Site is where a site is as DOF tells it.
type Site struct {
	Stub     *patch.Stub
	Function string // that holds it, as its symbol has it
	Alias    string // a global symbol at the same place
	Offset   uint32 // of the recorded instruction, from there, in bytes

	in       resolve.Function
	hasAlias bool // by an earlier run
}

// Sites returns the sites of a plan that has the options of Aliases.Options and no refusals, in its
// order, those of earlier runs too. Tests are left out where no kernel arms any.
func (a Aliases) Sites(p *patch.Plan) ([]Site, error) {
	var sites []Site
	names, err := a.names(p)
	if err != nil {
		return nil, err
	}
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Stub.Kind == arch.Enabled && !p.Scan.Machine.Traits().DOF.Tests {
			continue
		}
		in, ok, err := p.Scan.FunctionAt(s.Relocs.Target, s.Change.RecordedOffset)
		if err != nil {
			return nil, err
		}
		distance := s.Change.RecordedOffset - in.Start
		if !ok || uint64(uint32(distance)) != distance {
			return nil, p.Scan.Object.OffsetError(s.Relocs.Target, s.Change.RecordedOffset, fmt.Errorf("is too far from the start of its function"))
		}
		alias, err := names.name(in)
		if err != nil {
			return nil, err
		}
		sites = append(sites, Site{
			Stub: s.Stub, Function: in.Raw, Alias: alias, Offset: uint32(distance), in: in, hasAlias: names.lookup(in) != "",
		})
	}
	return sites, nil
}

// weakenStubs makes symbols of the stubs that linkers pass over.
func (a Aliases) weakenStubs(p *patch.Plan, e *elfreloc.Edit) error {
	syms, err := p.Scan.Object.Symbols()
	if err != nil {
		return err
	}
	for _, stub := range p.Scan.Stubs {
		old := syms.At(int(stub.Symbol))
		if stub.Defined || old.Bind == elf.STB_WEAK {
			continue
		}
		retired := elfreloc.Symbol{Name: stub.Name, Bind: elf.STB_GLOBAL, Section: a.Ignored}
		if retired.Section == 0 {
			retired.Bind, retired.Other = elf.STB_WEAK, old.Other&^3|byte(elf.STV_HIDDEN)
		}
		e.SetSymbol(stub.Symbol, retired)
	}
	return nil
}

// addAliases adds the aliases that an object does not have.
func (a Aliases) addAliases(p *patch.Plan, e *elfreloc.Edit) error {
	sites, err := a.Sites(p)
	if err != nil {
		return err
	}
	syms, err := p.Scan.Object.Symbols()
	added := map[image.Addr]bool{}
	for _, s := range sites {
		at := image.Addr{Section: s.in.Section, Offset: s.in.Start}
		if s.hasAlias || added[at] {
			continue
		}
		added[at] = true
		bind := elf.STB_GLOBAL
		if syms.At(s.in.Symbol).Bind == elf.STB_WEAK {
			bind = elf.STB_WEAK
		}
		e.AddSymbol(elfreloc.Symbol{
			Name: s.Alias, Bind: bind, Type: elf.STT_FUNC, Other: a.Visibility, Section: s.in.Section, Value: s.in.Start, Size: s.in.Size,
		})
	}
	return err
}

// aliasNames are the names that DOF knows functions of an object by.
type aliasNames struct {
	from   Aliases
	object *elfreloc.Object
	syms   *elfreloc.Symbols
	have   map[image.Addr]string // those that an earlier run has added, by the place of the function
	id     string                // of the object, "" until it is needed
}

func (a Aliases) names(p *patch.Plan) (*aliasNames, error) {
	syms, err := p.Scan.Object.Symbols()
	if err != nil {
		return nil, err
	}
	names := &aliasNames{from: a, object: p.Scan.Object, syms: syms, have: map[image.Addr]string{}}
	for i, s := range syms.WithPrefix(dof.AliasPrefix) {
		if i >= syms.FirstGlobal() && s.Defined() && len(s.Name) > len(dof.AliasPrefix) {
			names.have[image.Addr{Section: s.Section, Offset: s.Value}] = s.Name
		}
	}
	return names, nil
}

// lookup returns the alias that the object has of a function, "" for none.
func (a *aliasNames) lookup(f resolve.Function) string {
	return a.have[image.Addr{Section: f.Section, Offset: f.Start}]
}

// name returns the alias of a function. That of a weak function is the same in all objects, as
// linkers keep one of them: what they keep defines it.
func (a *aliasNames) name(f resolve.Function) (name string, err error) {
	if name := a.lookup(f); name != "" {
		return name, nil
	}
	if a.syms.At(f.Symbol).Bind == elf.STB_WEAK {
		return dof.AliasPrefix + "." + f.Raw, nil
	}
	if a.id == "" {
		if a.id, err = objectID(a.object, a.from.Directory); err != nil {
			return "", err
		}
	}
	return dof.AliasPrefix + a.id + "." + f.Raw, nil
}

// objectID returns a number for an object that others of its link do not have: of its path
// from a directory, and of what is in it. DTrace takes the whole path, which differs from
// machine to machine; without any, copies of an object in two directories had one number.
func objectID(o *elfreloc.Object, directory string) (string, error) {
	if err := o.CheckRead(0, o.Size()); err != nil {
		return "", err
	}
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

// Names returns the stubs that `dtrace -G` edits: those that the headers of every
// `dtrace -h` declare (libdtrace, dt_link.c), and those of include/sdt.h.
func Names() patch.Names {
	n := patch.DefaultNames()
	n.Prefixes = append([]string{"__dtrace_"}, n.Prefixes...)
	n.EnabledPrefixes = append([]string{"__dtraceenabled_"}, n.EnabledPrefixes...)
	return n
}

// Edit is a site that `dtrace -G` has disabled in an object.
type Edit struct {
	Stub     *patch.Stub
	Section  int
	Mark     uint64    // the offset in Section of the relocation that is left
	Site     arch.Site // as it is now
	Record   uint64    // the offset in Section of the instruction that kernels arm
	Function string    // that holds it, as its symbol has it
	Alias    string    // the symbol by which DOF refers to the function, "" for Function
}

// Edits finds the sites that `dtrace -G` has disabled in an object, and the marks of such
// sites that are none. An object without aliases of functions has neither.
func Edits(o *elfreloc.Object) (edits []Edit, marks []patch.Refusal, err error) {
	m, ok := machines.Lookup(o.ABI()).(arch.DOFMachine)
	if !ok || o.Type != elf.ET_REL {
		return nil, nil, nil
	}
	if found, err := o.NamesContain([][]byte{[]byte(dof.AliasPrefix)}); err != nil || !found {
		return nil, nil, err
	}
	s, err := patch.Find(o, m, Aliases{}.Options())
	if err != nil {
		return nil, nil, err
	}
	p, err := patch.NewPlan(s)
	if err != nil {
		return nil, nil, err
	}
	names, err := Aliases{}.names(p)
	if err != nil {
		return nil, nil, err
	}
	none := m.Traits().None
	for i := range p.Sites {
		site := &p.Sites[i]
		if site.Reloc.Type != none {
			continue
		}
		f, _, err := s.FunctionAt(site.Relocs.Target, site.Change.RecordedOffset)
		if err != nil {
			return nil, nil, err
		}
		edits = append(edits, Edit{
			Stub: site.Stub, Section: site.Relocs.Target, Mark: site.Reloc.Offset, Site: site.Change.Site, Record: site.Change.RecordedOffset,
			Function: f.Raw, Alias: names.lookup(f),
		})
	}
	marks = slices.DeleteFunc(slices.Clone(p.Refused), func(r patch.Refusal) bool { return r.Reloc.Type != none })
	return edits, marks, nil
}
