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
func (c *fileChecker) definitions() {
	d := &definer{fileChecker: c, at: map[image.Addr]*definition{}}
	set, err := c.space.Probes.Set()
	c.fail(err)
	for _, at := range set {
		d.object(at)
	}
	if c.namesContain([]byte(c.set.opts.ProbePrefix)) {
		d.definedSymbols()
	}
	if !c.relocatable() {
		d.exports()
	}
	for _, at := range d.order {
		def := d.at[at]
		def.probe, err = c.space.Probes.Lookup(image.Ref{Addr: at, Symbol: def.symbol})
		c.fail(err)
		if def.finding = c.finding(UnusedProbe, at, nameOf(def.probe), ""); c.err != nil {
			return
		}
		def.bySites = def.image && c.space.Probes.DefinedBySites(at)
		c.link.probes = append(c.link.probes, *def)
	}
}

// object returns the definition at a place.
func (d *definer) object(at image.Addr) *definition {
	if d.at[at] == nil {
		d.at[at] = &definition{image: !d.relocatable(), scope: d.scope}
		d.order = append(d.order, at)
	}
	return d.at[at]
}

// definedSymbols notes what the symbols of a file define. Names that only begin as those
// of probe objects do are passed over, unless a structure is there.
func (d *definer) definedSymbols() {
	syms := d.symbols()
	if d.relocatable() {
		var err error
		if d.groups, err = d.Groups(); d.fail(err) {
			return
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
}

func (d *definer) symbol(s elfreloc.Symbol, global bool) {
	at := image.Addr{Offset: s.Value}
	if d.relocatable() {
		at.Section = s.Section
	}
	if d.at[at] == nil && !d.space.Probes.IsObject(at) {
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
func (d *definer) exports() {
	syms := d.dynamicSymbols()
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
}
