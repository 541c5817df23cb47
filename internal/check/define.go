package check

import (
	"debug/elf"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
)

// definer collects the probe objects of a file.
type definer struct {
	*fileChecker
	groups map[int]int // of an object's sections
	order  []image.Addr
	at     map[image.Addr]*definition
}

// definitions notes the probe objects that a file defines, and what it exports.
func (c *fileChecker) definitions() error {
	d := &definer{fileChecker: c, at: map[image.Addr]*definition{}}
	set, err := c.probes.Set()
	if err != nil {
		return err
	}
	for _, at := range set {
		d.object(at)
	}
	found, err := c.NamesContain([][]byte{[]byte(c.set.opts.ProbePrefix)})
	if err != nil {
		return err
	}
	if found {
		if err := d.symbols(); err != nil {
			return err
		}
	}
	if !c.relocatable() {
		if err := d.exports(); err != nil {
			return err
		}
	}
	for _, at := range d.order {
		def := d.at[at]
		if def.probe, err = c.probes.Lookup(image.Ref{Addr: at, Symbol: def.symbol}); err != nil {
			return err
		}
		f, err := c.finding(UnusedProbe, at, nameOf(def.probe), "")
		if err != nil {
			return err
		}
		def.finding = *f
		def.bySites = def.image && c.probes.DefinedBySites(at)
		c.link.probes = append(c.link.probes, *def)
	}
	return nil
}

// object returns the definition at a place.
func (d *definer) object(at image.Addr) *definition {
	if d.at[at] == nil {
		d.at[at] = &definition{image: !d.relocatable()}
		d.order = append(d.order, at)
	}
	return d.at[at]
}

// symbols notes what the symbols of a file define. Names that only begin as those
// of probe objects do are passed over, unless a structure is there.
func (d *definer) symbols() error {
	syms, err := d.Symbols()
	if err != nil {
		return err
	}
	if d.relocatable() {
		if d.groups, err = d.Groups(); err != nil {
			return err
		}
	}
	prefix := d.set.opts.ProbePrefix
	for i := 1; i < syms.Len(); i++ {
		if !strings.Contains(syms.Name(i), prefix) {
			continue
		}
		s := syms.At(i)
		global := i >= syms.FirstGlobal()
		if s.Section == 0 || s.Type != elf.STT_OBJECT && s.Type != elf.STT_NOTYPE && s.Type != elf.STT_COMMON {
			continue
		}
		if global && d.relocatable() {
			d.link.defined[s.Name] = true
		}
		if s.Section > 0 {
			d.symbol(s, global)
		}
	}
	return nil
}

func (d *definer) symbol(s elfreloc.Symbol, global bool) {
	at := image.Addr{Offset: s.Value}
	if d.relocatable() {
		at.Section = s.Section
	}
	if d.at[at] == nil && !d.probes.IsObject(at) {
		return
	}
	def := d.object(at)
	local := !strings.HasPrefix(s.Name, d.set.opts.ProbePrefix) || strings.Contains(s.Name, ".")
	if def.symbol == "" || def.local && !local {
		def.symbol, def.local = s.Name, local
	}
	_, grouped := d.groups[s.Section]
	def.strong = def.strong || global && d.relocatable() && s.Bind == elf.STB_GLOBAL && !grouped
}

// exports notes what an image defines for others.
func (d *definer) exports() error {
	syms, err := d.DynamicSymbols()
	if err != nil {
		return err
	}
	for i, s := range syms.WithPrefix(d.set.opts.ProbePrefix) {
		if s.Section == 0 || i < syms.FirstGlobal() {
			continue
		}
		d.link.exported[s.Name] = true
		d.symbol(s, true)
		if def := d.at[image.Addr{Offset: s.Value}]; def != nil {
			def.exported = true
		}
	}
	return nil
}
