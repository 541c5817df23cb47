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

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/resolve"
)

// DOF has sites disabled as `dtrace -G` disables them. There are no records then, no
// notes and no semaphores.
type DOF struct {
	// Visibility is that of the aliases of functions, STV_HIDDEN or a system's own.
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

// checkDOF refuses objects of machines that DTrace does not know.
func (p *Plan) checkDOF() error {
	if _, ok := p.Scan.Machine.(arch.DOFMachine); !ok {
		return &elfreloc.Error{File: p.Scan.Object.Name, Err: fmt.Errorf("holds probes, and DTrace has no form of them for %v", p.Scan.Object.Machine)}
	}
	return nil
}

// DOFSites returns the sites of a plan that has Options.DOF and no refusals, in its
// order, those of earlier runs too. Tests are left out where no kernel arms any.
func (p *Plan) DOFSites() ([]DOFSite, error) {
	var sites []DOFSite
	err := p.eachDOFSite(func(s DOFSite, _ resolve.Function) { sites = append(sites, s) })
	if err != nil {
		return nil, err
	}
	return sites, nil
}

func (p *Plan) aliases() (*aliases, error) {
	return newAliases(p.Scan.Object, p.Options.DOF.Directory)
}

// weakenStubs makes symbols of the stubs that linkers pass over.
func (p *Plan) weakenStubs(e *elfreloc.Edit) error {
	syms, err := p.Scan.Object.Symbols()
	if err != nil {
		return err
	}
	for _, stub := range p.Scan.Stubs {
		old := syms.At(int(stub.Symbol))
		if stub.Defined || old.Bind == elf.STB_WEAK {
			continue
		}
		retired := elfreloc.Symbol{Name: stub.Name, Bind: elf.STB_GLOBAL, Section: p.Options.DOF.Ignored}
		if retired.Section == 0 {
			retired.Bind, retired.Other = elf.STB_WEAK, old.Other&^3|byte(elf.STV_HIDDEN)
		}
		e.SetSymbol(stub.Symbol, retired)
	}
	return nil
}

// addAliases adds the aliases that an object does not have.
func (p *Plan) addAliases(e *elfreloc.Edit) error {
	a, err := p.aliases()
	if err != nil {
		return err
	}
	added := map[image.Addr]bool{}
	syms, err := p.Scan.Object.Symbols()
	if err != nil {
		return err
	}
	return p.eachDOFSite(func(s DOFSite, f resolve.Function) {
		at := image.Addr{Section: f.Section, Offset: f.Start}
		if a.lookup(f) != "" || added[at] {
			return
		}
		added[at] = true
		bind := elf.STB_GLOBAL
		if syms.At(f.Symbol).Bind == elf.STB_WEAK {
			bind = elf.STB_WEAK
		}
		e.AddSymbol(elfreloc.Symbol{
			Name: s.Alias, Bind: bind, Type: elf.STT_FUNC, Other: p.Options.DOF.Visibility, Section: f.Section, Value: f.Start, Size: f.Size,
		})
	})
}

// eachDOFSite calls f with the sites of DOFSites, and their functions.
func (p *Plan) eachDOFSite(f func(DOFSite, resolve.Function)) error {
	a, err := p.aliases()
	if err != nil {
		return err
	}
	for i := range p.Sites {
		s := &p.Sites[i]
		if s.Stub.Kind == arch.Enabled && !p.Scan.Machine.Traits().DOF.Tests {
			continue
		}
		in, ok, err := p.functionOf(s.Relocs.Target, s.Change.RecordedOffset)
		if err != nil {
			return err
		}
		distance := s.Change.RecordedOffset - in.Start
		if !ok || uint64(uint32(distance)) != distance {
			return p.Scan.Object.OffsetError(s.Relocs.Target, s.Change.RecordedOffset, fmt.Errorf("is too far from the start of its function"))
		}
		alias, err := a.name(in)
		if err != nil {
			return err
		}
		f(DOFSite{Stub: s.Stub, Function: in.Raw, Alias: alias, Offset: uint32(distance)}, in)
	}
	return nil
}
