package check

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/manifest"
	"sdtconvert/resolve"
)

// manifestDiff compares a manifest with images: which functions they have, and with
// which sites.
//
// A function is found by its symbol, and a local one also by its source file, which distinguishes
// local functions of one name. If several copies remain, the linker is assumed to have kept the
// one with the same sites and the same size.
type manifestDiff struct {
	manifest *Manifest
	copies   map[string][]*functionCopy // by symbol
	images   []*imageSites              // in the order of the files
}

// imageSites is what one file has.
type imageSites struct {
	linked    bool // not an object
	sites     []imageSite
	used      []bool          // sites that some copy has
	unclaimed map[siteKey]int // how many others there are
	outcomes  []outcome
}

// outcome is what has become of a copy in one file.
type outcome struct {
	copy   *functionCopy
	keptIn string // the file, when it has another copy instead
	lost   *lost  // nil when all is there
}

// lost are the sites that a copy has lost in an image.
type lost struct {
	findings []Finding
	sameSize bool
}

// instance is a function of an image.
type instance struct {
	resolve.Function
	sourceFile string
	sites      []*imageSite
}

func newManifestDiff(m *Manifest) *manifestDiff {
	if m == nil {
		return nil
	}
	d := &manifestDiff{manifest: m, copies: map[string][]*functionCopy{}}
	for _, file := range slices.Sorted(maps.Keys(m.byFile)) {
		for _, c := range m.byFile[file].copies {
			m.copies = append(m.copies, c)
			d.copies[c.symbol] = append(d.copies[c.symbol], c)
		}
	}
	return d
}

// add compares the manifest with the sites of a file.
func (d *manifestDiff) add(file *fileChecker) error {
	if d == nil {
		return nil
	}
	if err := file.code.Read(); err != nil {
		return err
	}
	if !file.hasSymbols() {
		return fmt.Errorf("%s: has no symbols, so nothing tells what the linker has dropped from what is lost; compare it before it is stripped", file.Name)
	}
	im := &imageSites{linked: !file.relocatable(), unclaimed: map[siteKey]int{}}
	byStart, err := im.read(file)
	if err != nil {
		return err
	}
	instances := map[string][]*instance{}
	for _, f := range file.code.Functions().Named(func(name string) bool { return d.manifest.names[name] }) {
		in := &instance{Function: f, sourceFile: file.code.Functions().SourceFile(f), sites: byStart[image.Addr{Section: f.Section, Offset: f.Start}]}
		instances[f.Raw] = append(instances[f.Raw], in)
	}
	for _, symbol := range slices.Sorted(maps.Keys(instances)) {
		if err := d.assign(file, im, d.copies[symbol], instances[symbol]); err != nil {
			return err
		}
	}
	for i, used := range im.used {
		if !used {
			s := &im.sites[i]
			for _, id := range s.ids {
				im.unclaimed[siteKey{id, s.enabled, s.noteOnly, s.nameless}]++
			}
		}
	}
	d.images = append(d.images, im)
	return nil
}

// siteKey is what sites share that are alike but for their places.
type siteKey struct {
	id                          string
	enabled, noteOnly, nameless bool // as in imageSite
}

// read lists the sites of a file, and finds those of each function by its start.
func (im *imageSites) read(file *fileChecker) (map[image.Addr][]*imageSite, error) {
	count := len(file.entries) + len(file.noteSites)
	im.sites, im.used = make([]imageSite, 0, count), make([]bool, count)
	for i := range file.entries {
		e := &file.entries[i]
		ids, err := file.probes.IDs(e.Probe)
		if err != nil {
			return nil, err
		}
		im.sites = append(im.sites, imageSite{at: e.Site, ids: ids, enabled: e.Kind == arch.Enabled})
	}
	for _, s := range file.noteSites {
		im.sites = append(im.sites, imageSite{at: s.at, ids: s.ids(), noteOnly: true})
	}
	byStart := map[image.Addr][]*imageSite{}
	for i := range im.sites {
		s := &im.sites[i]
		s.index = i
		f, ok := file.code.Functions().Lookup(s.at.Section, s.at.Offset)
		s.nameless = !ok || f.Unsized || f.Raw == ""
		if !ok {
			continue
		}
		s.offset = s.at.Offset - f.Start
		start := image.Addr{Section: f.Section, Offset: f.Start}
		byStart[start] = append(byStart[start], s)
	}
	return byStart, nil
}

// pair is a copy that may have become an instance.
type pair struct {
	copy     *functionCopy
	instance *instance
	sites    []*imageSite // of the image, for each site of the copy; nil where it is missing
	missing  int
	same     bool // place by place
	sameSize bool
}

// assign finds out which copy of a function each instance of it is.
func (d *manifestDiff) assign(file *fileChecker, im *imageSites, copies []*functionCopy, instances []*instance) error {
	var pairs []pair
	for _, c := range copies {
		for _, in := range instances {
			if c.sourceFile == "" || in.sourceFile == "" || c.sourceFile == in.sourceFile {
				pairs = append(pairs, compare(c, in, file.Machine.Traits().Relaxes))
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(-compareBool(a.same, b.same), -compareBool(a.sameSize, b.sameSize), cmp.Compare(a.missing, b.missing))
	})
	takenCopy, takenInstance := map[*functionCopy]bool{}, map[*instance]bool{}
	for i := range pairs {
		p := &pairs[i]
		switch {
		case takenCopy[p.copy]:
		case takenInstance[p.instance]:
			im.outcomes = append(im.outcomes, outcome{copy: p.copy, keptIn: file.Name})
		default:
			takenCopy[p.copy], takenInstance[p.instance] = true, true
			if err := im.match(file, p); err != nil {
				return err
			}
		}
	}
	return nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// maySize reports whether a function of an object may have a size in an image. Linkers
// that delete code leave at least two of the eight bytes of a call.
func maySize(object, image uint64, relaxed bool) bool {
	return object == image || relaxed && image < object && image >= object/4
}

// compare finds the sites of a copy in an instance: where they were, or else anywhere.
func compare(c *functionCopy, in *instance, relaxed bool) pair {
	p := pair{copy: c, instance: in, sites: make([]*imageSite, len(c.sites)), same: true, sameSize: maySize(c.size, in.Size, relaxed)}
	find(&p, (*manifest.Site).Recorded, func(s *imageSite) []uint64 { return []uint64{s.offset} })
	if slices.Contains(p.sites, nil) {
		p.same = relaxed
		find(&p, func(want *manifest.Site) string { return want.Probe }, func(s *imageSite) []string { return s.ids })
	}
	for _, s := range p.sites {
		if s == nil {
			p.missing++
			p.same = false
		}
	}
	return p
}

// find gives to each site of the copy that has none yet the first one of the instance that
// matches, is free, and has the wanted key: so it need not look at all.
func find[K comparable](p *pair, key func(*manifest.Site) K, keys func(*imageSite) []K) {
	taken := make(map[*imageSite]bool, len(p.sites))
	for _, s := range p.sites {
		taken[s] = true
	}
	free := map[K][]*imageSite{}
	for _, s := range p.instance.sites {
		for _, k := range keys(s) {
			if !taken[s] {
				free[k] = append(free[k], s)
			}
		}
	}
	for i := range p.sites {
		if p.sites[i] != nil {
			continue
		}
		want := &p.copy.sites[i]
		k := key(want)
		for len(free[k]) > 0 && taken[free[k][0]] {
			free[k] = free[k][1:]
		}
		for _, s := range free[k] {
			if !taken[s] && s.matches(want) {
				p.sites[i], taken[s] = s, true
				break
			}
		}
	}
}

// compareManifest reports what has become of the manifest's sites.
func (s *Set) compareManifest() {
	d := s.manifestDiff
	if d == nil {
		return
	}
	// What was linked is the end of the way; without it, the objects are.
	linked := slices.ContainsFunc(d.images, func(im *imageSites) bool { return im.linked })
	d.images = slices.DeleteFunc(d.images, func(im *imageSites) bool { return im.linked != linked })
	for _, im := range d.images {
		for _, o := range im.outcomes {
			o.copy.addOutcome(o)
		}
	}
	for _, c := range d.manifest.copies {
		for _, loss := range c.lost {
			if c.complete && !loss.sameSize {
				continue // another function of that name, in another program
			}
			s.findings = append(s.findings, loss.findings...)
		}
		if !c.complete && len(c.lost) == 0 && !s.incomplete {
			s.reportAbsent(c)
		}
	}
}

// addOutcome adds what has become of a copy in one file.
func (c *functionCopy) addOutcome(o outcome) {
	switch {
	case o.keptIn != "":
		c.keptIn = append(c.keptIn, o.keptIn)
	case o.lost != nil:
		c.lost = append(c.lost, o.lost)
	default:
		c.complete = true
	}
}

// takeUnclaimed takes a site of an image that no copy of a function has claimed.
func (d *manifestDiff) takeUnclaimed(key siteKey) bool {
	for _, im := range d.images {
		if im.unclaimed[key] > 0 {
			im.unclaimed[key]--
			return true
		}
	}
	return false
}
