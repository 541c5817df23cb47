package check

// `dtrace -G` disables sites in objects, and writes an object that describes them to the kernel
// and refers to their functions by aliases. A later run of -G for other objects, with the same
// output, overwrites that description, and then nothing arms the first sites.

import (
	"debug/elf"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/dofprobes"
	"sdtconvert/internal/emit/dof"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// dofLink is what is known of `dtrace -G` in the objects of one link.
type dofLink struct {
	sites      []dofSite
	referenced map[string]bool // symbols of functions that DOF refers to
}

// dofSite is a site that -G has disabled.
type dofSite struct {
	finding         Finding // what it is if no DOF names it
	function, alias string
}

// dofEdits checks what `dtrace -G` has edited, in an object or an image.
func (c *fileChecker) dofEdits() error {
	if !c.relocatable() {
		return c.dofImage()
	}
	if err := c.dofFunctions(); err != nil {
		return err
	}
	edits, marks, err := patch.DOFEdits(c.Object.Object)
	if err != nil {
		return err
	}
	for i := range edits {
		e := &edits[i]
		at := image.Addr{Section: e.Section, Offset: e.Record}
		if err := c.stubSite(e.Stub.ID, at); err != nil {
			return err
		}
		if e.Stub.Kind == arch.Enabled && !c.Machine.Traits().DOF.Tests {
			continue // no kernel arms it, and -G has said so
		}
		f, err := c.finding(LostSite, at, e.Stub.ID, "")
		if err != nil {
			return err
		}
		c.link.dof.sites = append(c.link.dof.sites, dofSite{*f, e.Function, e.Alias})
	}
	for i := range marks {
		at := image.Addr{Section: marks[i].Relocs.Target, Offset: marks[i].Reloc.Offset}
		if err := c.add(UnknownSite, at, marks[i].Stub.ID, "was disabled by dtrace -G, and no longer has a form of that"); err != nil {
			return err
		}
	}
	return nil
}

// dofFunctions notes the functions that the DOF of an object refers to.
func (c *fileChecker) dofFunctions() error {
	isDOF := func(sec *elfreloc.Section) bool { return sec.Name == dof.SectionName }
	return c.EachRelocationOf(isDOF, func(_ int, r elfreloc.Relocation) error {
		syms, err := c.Symbols()
		if err == nil {
			c.link.dof.addReference(syms.Name(int(r.Sym)))
		}
		return err
	})
}

// addReference records that DOF refers to a function.
func (d *dofLink) addReference(symbol string) {
	if d.referenced == nil {
		d.referenced = map[string]bool{}
	}
	d.referenced[symbol] = true
}

// lostDOF finds the sites in objects that no DOF of the link names.
func (l *link) lostDOF() {
	for i := range l.dof.sites {
		if e := &l.dof.sites[i]; !l.dof.referenced[e.alias] && !l.dof.referenced[e.function] {
			l.add(e.finding, LostSite, "dtrace -G has disabled it, and no object of the link tells the kernel of it; run -G once, for all objects of the link")
		}
	}
}

// dofImage records the sites that the DOF of an image describes, and finds the functions that have
// an alias and no described site.
func (c *fileChecker) dofImage() error {
	probes, _, err := dofprobes.Read(c.Object.Object, c.code.Image)
	if err != nil {
		return err
	}
	recorded := c.recordedSites()
	var siteAddrs []uint64
	for i := range probes {
		p := &probes[i]
		for _, s := range p.Sites {
			siteAddrs = append(siteAddrs, s.Addr.Offset)
			if !recorded[s.Addr] {
				c.site(linkerset.Probe{Provider: p.Provider, Name: p.Name}, s.Addr, p.Function)
			}
		}
	}
	slices.Sort(siteAddrs)
	if found, err := c.NamesContain([][]byte{[]byte(patch.AliasPrefix)}); err != nil || !found {
		return err
	}
	syms, err := c.Symbols()
	if err != nil {
		return err
	}
	for _, s := range syms.WithPrefix(patch.AliasPrefix) {
		if s.Section <= 0 || s.Type != elf.STT_FUNC || s.Size == 0 {
			continue
		}
		if next, _ := slices.BinarySearch(siteAddrs, s.Value); next == len(siteAddrs) || siteAddrs[next]-s.Value >= s.Size {
			if err := c.add(LostSite, image.Addr{Offset: s.Value}, "",
				"dtrace -G has disabled sites of this function, and nothing in the file tells the kernel of them; run -G once, for all objects of the link"); err != nil {
				return err
			}
		}
	}
	return nil
}
