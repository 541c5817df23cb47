package check

import (
	"debug/elf"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
)

// recorded checks the probe object of a record.
func (c *fileChecker) recorded(e *linkerset.Entry, id string) {
	switch {
	case e.Probe.Null():
		c.add(UndefinedProbe, e.Address, id, "the record of this site has a null pointer for its probe object")
		return
	case e.Probe.Undefined && c.link.knowsUse(e.Probe.Symbol, c.index):
		return
	case e.Probe.Undefined:
		rule := UndefinedProbe
		if !c.relocatable() {
			rule = UnresolvedProbe
		}
		if u := (use{c.finding(rule, e.Address, id, ""), c.hidden(e.Probe.Symbol)}); c.err == nil {
			c.link.addUse(e.Probe.Symbol, u)
		}
		return
	}
	if _, err := c.code.Image.Bytes(e.Probe.Addr, 1); err != nil && e.Probe.Symbol == "" {
		c.add(DanglingRecord, e.Record, id, "a record of a probe object at %s, which is nowhere in the file", c.code.Image.Place(e.Probe.Addr))
		return
	}
	c.link.usedObjects[location{c.index, e.Probe.Addr}] = true
	if e.Probe.Symbol != "" && c.link.uses[e.Probe.Symbol] == nil {
		c.link.uses[e.Probe.Symbol] = []use{}
	}
	c.scope.recorded[id] = true
}

// hidden reports whether an object's reference to a symbol reaches into no other
// module.
func (c *fileChecker) hidden(name string) bool {
	if !c.relocatable() {
		return false
	}
	if c.hiddenNames == nil {
		c.hiddenNames = map[string]bool{}
		syms := c.symbols()
		for i := syms.FirstGlobal(); i < syms.Len(); i++ {
			if s := syms.At(i); s.Section == 0 && s.Visibility() != 0 {
				c.hiddenNames[s.Name] = true
			}
		}
	}
	return c.hiddenNames[name]
}

// noteID returns the id of a probe by the names that its notes have.
func noteID(p linkerset.Probe) string {
	return idOf(linkerset.EncodeName(p.Provider), linkerset.EncodeName(p.Name))
}

// nameOf returns what findings call a probe.
func nameOf(p linkerset.Probe) string {
	if p.ID != "" || p.Provider == "" && p.Name == "" {
		return p.ID
	}
	return p.Provider + ":::" + p.Name
}

// fullName returns the name of a probe, as listings show it.
func fullName(p linkerset.Probe) Probe { return Probe{p.Provider, p.Module, p.Function, p.Name} }

func (p Probe) String() string {
	return p.Provider + ":" + p.Module + ":" + p.Function + ":" + p.Name
}

// recordSections checks the tables of functions and the sections of the records.
func (c *fileChecker) recordSections() {
	for _, fault := range c.code.RecordedFaults() {
		c.addWhole(BrokenFunctions, "", "%s", withoutFile(fault))
	}
	isKernels := func(l linkerset.Layout) bool { return l.Format == linkerset.Tracepoints }
	layouts := slices.DeleteFunc(slices.Clone(c.space.RecordLayouts), isKernels)
	c.checkBounds(layouts)
	c.conversionTraits(layouts)
}

// conversionTraits notes how an object was converted, or finds an image that holds records
// of several conversions.
func (c *fileChecker) conversionTraits(layouts []linkerset.Layout) {
	if !c.relocatable() {
		c.imageTraits(layouts)
		return
	}
	for _, layout := range layouts {
		c.trait(MixedLayout, "", describeLayout(layout))
	}
	o := c.Object.Object
	anchored, err := linkerset.AnchoredSections(o, c.Machine)
	if c.fail(err) {
		return
	}
	conversion := "without notes"
	if notes.HasStapsdt(o) {
		conversion = "with notes (--stapsdt)"
	}
	for i := range o.Sections {
		sec := &o.Sections[i]
		kind, ok := recordKind(layouts, sec.Name)
		if !ok || sec.Size == 0 {
			continue
		}
		c.trait(MixedFlags, "the flags of "+sec.Name, flagsOf(sec))
		c.trait(MixedFlags, "--drop-relocations", describeFlag(!anchored[i]))
		if kind == arch.Probe {
			c.trait(MixedFlags, "", conversion)
			c.trait(MixedFlags, "--dtrace", describeFlag(c.hasSection(notes.WroteUSDT)))
		}
	}
}

func describeLayout(l linkerset.Layout) string {
	if l.Name == "" {
		return fmt.Sprintf("layout %v", l.Format)
	}
	return fmt.Sprintf("layout %v, section %s", l.Format, l.Section(arch.Probe))
}

// describeFlag returns whether a flag was given, in words.
func describeFlag(yes bool) string {
	if yes {
		return "given"
	}
	return "not given"
}

// flagsOf shows those flags of a section that linkers tell sections of one name
// apart by.
func flagsOf(sec *elfreloc.Section) string {
	return (sec.Flags &^ elf.SHF_GROUP).String()
}

func recordKind(layouts []linkerset.Layout, section string) (arch.Kind, bool) {
	for _, l := range layouts {
		for k := range arch.Kinds {
			if l.Section(k) == section {
				return k, true
			}
		}
	}
	return 0, false
}

// imageTraits looks for what mixed conversions leave in an image: records of
// several layouts, and several output sections of one name.
func (c *fileChecker) imageTraits(layouts []linkerset.Layout) {
	for i := 1; i < len(layouts); i++ {
		c.addWhole(MixedLayout, "", "holds records of %s, and of %s too", describeLayout(layouts[0]), describeLayout(layouts[i]))
	}
	seen := map[string]*elfreloc.Section{}
	for i := range c.Sections {
		sec := &c.Sections[i]
		if _, ok := recordKind(layouts, sec.Name); !ok || sec.Size == 0 {
			continue
		}
		if first := seen[sec.Name]; first != nil {
			c.addWhole(MixedFlags, "", "holds two sections %s, at %#x with %s and at %#x with %s; __start_%s leads to one of them",
				sec.Name, first.Addr, flagsOf(first), sec.Addr, flagsOf(sec), sec.Name)
			continue
		}
		seen[sec.Name] = sec
	}
}

// checkBounds applies MissingBounds to an image of FreeBSD. link_elf.c looks for the symbols in
// .dynsym and then in .symtab, and says ENOENT where both lack them. Objects and the
// modules of amd64 are found by the names of sections, and stripped files are skipped.
func (c *fileChecker) checkBounds(layouts []linkerset.Layout) {
	if c.relocatable() || c.OSABI() != elf.ELFOSABI_FREEBSD {
		return
	}
	static := c.symbols()
	if static.Len() == 0 {
		return
	}
	dynamic := c.dynamicSymbols()
	has := func(name string) bool {
		for range static.Named(name) {
			return true
		}
		for _, s := range dynamic.Named(name) {
			if s.Section != 0 {
				return true
			}
		}
		return false
	}
	for _, layout := range layouts {
		if layout.Format != linkerset.FreeBSD {
			continue
		}
		for kind := range arch.Kinds {
			section := layout.Section(kind)
			ranges, err := c.code.Image.Arrays(section)
			c.fail(err)
			if len(ranges) > 0 && !(has("__start_"+section) && has("__stop_"+section)) {
				c.addWhole(MissingBounds, "", "no __start_%s and __stop_%s, so the kernel finds no record in this section", section, section)
			}
		}
	}
}

// kernelTracepoints applies KernelTracepoint.
func (c *fileChecker) kernelTracepoints() {
	if c.OSABI() != elf.ELFOSABI_FREEBSD {
		return
	}
	found, err := input.HasKernelTracepoints(c.Object.Object)
	c.fail(err)
	if found {
		c.addWhole(KernelTracepoint, "", "compiled with the kernel's own sys/sdt.h, whose tracepoints call sdt_probe_func; give the compiler the -I of sdtconvert's header first, in CC")
	}
}

// mostUnconverted is for how many probes of an image there is a finding each.
const mostUnconverted = 100

// unconverted finds the probes of which an image has tracepoints that no conversion has met. If
// it has no other sites, or there are too many, one finding is of all.
func (c *fileChecker) unconverted() {
	if c.relocatable() {
		return
	}
	ids, err := sites.UnconvertedProbes(c.Object.Object)
	if c.fail(err) || len(ids) == 0 {
		return
	}
	c.link.unconverted[c.index] = true
	if len(c.space.Sites) == 0 || len(ids) > mostUnconverted {
		c.addWhole(NotConverted, "", "not converted (%s, %s first): %s", message.Plural(len(ids), "probe"), ids[0], sites.ConvertAdvice())
		return
	}
	for _, id := range ids {
		c.addWhole(NotConverted, id, "not converted: %s", sites.ConvertAdvice())
	}
}
