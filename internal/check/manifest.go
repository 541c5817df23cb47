package check

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/manifest"
	"sdtconvert/resolve"
)

// Manifest says which sites objects had when they were converted. It is read from
// the JSON of docs/output.md, and compared with images: which functions they have, and with
// which sites.
//
// A function is found by its symbol, and a local one also by its source file, which distinguishes
// local functions of one name. If several copies remain, the linker is assumed to have kept the
// one with the same sites and the same size.
type Manifest struct {
	byFile map[string]*manifestObject
	reads  int // calls of Read

	copies   []*functionCopy            // sorted by file
	bySymbol map[string][]*functionCopy // the same
	images   []*imageSites              // in the order of the files
}

// functionCopy is a function of one object, with its sites. A linker keeps one of
// the copies of a function that several objects have.
type functionCopy struct {
	object     string
	symbol     string // "" for sites that no function holds
	sourceFile string // of a local function; "" for others
	size       uint64 // bytes, 0 when not known
	sites      []manifest.Site

	complete bool     // some image has all its sites
	lost     []*lost  // by image
	keptIn   []string // images that have another copy of the function
}

// manifestObject is what a document says of the objects of one name, which several members of an archive
// may have.
type manifestObject struct {
	read, document int
	copies         []*functionCopy
}

// Read adds a manifest, or several one behind the other. What a later one says of an object
// replaces what an earlier one says.
func (m *Manifest) Read(r io.Reader) error {
	m.reads++
	return manifest.Read(r, m.add)
}

// add takes in the sites of one object that have a record or a note.
func (m *Manifest) add(o *manifest.Object) {
	if m.byFile == nil {
		m.byFile = map[string]*manifestObject{}
	}
	type key struct {
		section, symbol string
		start           uint64
	}
	byKey := map[key]*functionCopy{}
	d := m.byFile[o.File]
	if d == nil || d.read != m.reads || d.document != o.Document {
		d = &manifestObject{read: m.reads, document: o.Document}
		m.byFile[o.File] = d
	}
	for _, s := range o.Sites {
		if s.Record == nil && s.Note == nil || s.State == manifest.Refused {
			continue
		}
		symbol := cmp.Or(s.Symbol, s.Function)
		k := key{s.Section, symbol, s.Offset - s.FunctionOffset}
		if byKey[k] == nil {
			byKey[k] = &functionCopy{object: o.File, symbol: symbol, sourceFile: s.SourceFile, size: s.FunctionSize}
			d.copies = append(d.copies, byKey[k])
		}
		byKey[k].sites = append(byKey[k].sites, s)
	}
}

// imageSite is a site of an image.
type imageSite struct {
	at       image.Addr
	ids      []string // of the probe object's names
	enabled  bool
	noteOnly bool   // by a note alone
	nameless bool   // in no function that has a symbol and a size
	offset   uint64 // from the function's start
	index    int    // among all sites of the image
}

// matches reports whether a site of an image may be one of a manifest, wherever it is. A site with a
// record matches one that had a note, and not the reverse.
func (s *imageSite) matches(want *manifest.Site) bool {
	return s.enabled == want.Enabled() && (want.Note != nil || !s.noteOnly) && slices.Contains(s.ids, want.Probe)
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

// sortCopies prepares the manifest for comparisons.
func (m *Manifest) sortCopies() {
	m.bySymbol = map[string][]*functionCopy{}
	for _, file := range slices.Sorted(maps.Keys(m.byFile)) {
		for _, c := range m.byFile[file].copies {
			m.copies = append(m.copies, c)
			m.bySymbol[c.symbol] = append(m.bySymbol[c.symbol], c)
		}
	}
}

// compareManifest compares the manifest with the sites of a file.
func (c *fileChecker) compareManifest() {
	m := c.set.opts.Manifest
	if m == nil || !c.read() {
		return
	}
	if !c.hasSymbols() {
		c.fail(fmt.Errorf("%s: has no symbols, so nothing tells what the linker has dropped from what is lost; compare it before it is stripped", c.Name))
		return
	}
	im := &imageSites{linked: !c.relocatable(), unclaimed: map[siteKey]int{}}
	byStart := im.read(c)
	instances, functions := map[string][]*instance{}, c.code.Functions()
	for _, f := range functions.Named(func(name string) bool { return m.bySymbol[name] != nil }) {
		in := &instance{Function: f, sourceFile: functions.SourceFile(f), sites: byStart[image.Addr{Section: f.Section, Offset: f.Start}]}
		instances[f.Raw] = append(instances[f.Raw], in)
	}
	for _, symbol := range slices.Sorted(maps.Keys(instances)) {
		im.assign(c, m.bySymbol[symbol], instances[symbol])
	}
	for i, used := range im.used {
		if !used {
			s := &im.sites[i]
			for _, id := range s.ids {
				im.unclaimed[siteKey{id, s.enabled, s.noteOnly, s.nameless}]++
			}
		}
	}
	if c.err == nil {
		m.images = append(m.images, im)
	}
}

// siteKey is what sites share that are alike but for their places.
type siteKey struct {
	id                          string
	enabled, noteOnly, nameless bool // as in imageSite
}

// read lists the sites of a file, and finds those of each function by its start.
func (im *imageSites) read(file *fileChecker) map[image.Addr][]*imageSite {
	count := len(file.entries) + len(file.noteSites)
	im.sites, im.used = make([]imageSite, 0, count), make([]bool, count)
	for i := range file.entries {
		e := &file.entries[i]
		ids, err := file.probes.IDs(e.Probe)
		file.fail(err)
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
	return byStart
}

// pair is a copy that may have become an instance.
type pair struct {
	copy     *functionCopy
	instance *instance
	sites    []*imageSite // of the image, for each site of the copy; nil where it is missing
	missing  int
	unlike   int // 0 for one with all sites, place by place, and the size; 1 for another size, 2 or 3 for other sites
	sameSize bool
}

// assign finds out which copy of a function each instance of it is.
func (im *imageSites) assign(file *fileChecker, copies []*functionCopy, instances []*instance) {
	var pairs []pair
	for _, c := range copies {
		for _, in := range instances {
			if c.sourceFile == "" || in.sourceFile == "" || c.sourceFile == in.sourceFile {
				pairs = append(pairs, compare(c, in, file.Machine.Traits().Relaxes))
			}
		}
	}
	slices.SortStableFunc(pairs, func(a, b pair) int {
		return cmp.Or(cmp.Compare(a.unlike, b.unlike), cmp.Compare(a.missing, b.missing))
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
			im.match(file, p)
		}
	}
}

// match records that a copy has become an instance, and which sites the copy has lost there.
func (im *imageSites) match(c *fileChecker, p *pair) {
	missing := &lost{sameSize: p.sameSize}
	for i, s := range p.sites {
		want := &p.copy.sites[i]
		if s == nil {
			missing.findings = append(missing.findings, c.lostSite(p, want))
			continue
		}
		im.used[s.index] = true
		if want.HasNote && c.noteAt[s.at] == nil && !c.wantsNotes && !c.scope.brokenNotes {
			missing.findings = append(missing.findings, c.finding(MissingNote, s.at, want.Probe,
				"the %s of %s at %s+%#x had a note, and has none here", want.Kind, p.copy.object, want.Section, want.Offset))
		}
	}
	if len(missing.findings) == 0 {
		missing = nil
	}
	im.outcomes = append(im.outcomes, outcome{copy: p.copy, lost: missing})
}

// lostSite returns the finding for a site that an instance lacks. Its address is the function's start,
// because other code may be at the site's old place. Its line is the manifest's, if known.
func (c *fileChecker) lostSite(p *pair, site *manifest.Site) Finding {
	described := "record"
	if site.Note != nil {
		described = "note"
	}
	start := image.Addr{Section: p.instance.Section, Offset: p.instance.Start}
	f := c.finding(LostSite, start, site.Probe, "the %s of %s at %s+%#x has no %s", site.Kind, p.copy.object, site.Section, site.Offset, described)
	f.setSource(site)
	return f
}

// setSource makes a finding name the line that the manifest has of a site.
func (f *Finding) setSource(site *manifest.Site) {
	colon := strings.LastIndexByte(site.Source, ':')
	if colon <= 0 {
		return
	}
	if line, err := strconv.Atoi(site.Source[colon+1:]); err == nil && line > 0 {
		f.Source, f.Line = site.Source[:colon], line
	}
}

// maySize reports whether a function of an object may have a size in an image. Linkers
// that delete code leave at least two of the eight bytes of a call.
func maySize(object, image uint64, relaxed bool) bool {
	return object == image || relaxed && image < object && image >= object/4
}

// compare finds the sites of a copy in an instance: where they were, or else anywhere.
func compare(c *functionCopy, in *instance, relaxed bool) pair {
	p := pair{copy: c, instance: in, sites: make([]*imageSite, len(c.sites)), sameSize: maySize(c.size, in.Size, relaxed)}
	find(&p, (*manifest.Site).Recorded, func(s *imageSite) []uint64 { return []uint64{s.offset} })
	if !p.sameSize {
		p.unlike = 1
	}
	if slices.Contains(p.sites, nil) {
		find(&p, func(want *manifest.Site) string { return want.Probe }, func(s *imageSite) []string { return s.ids })
		if !relaxed || slices.Contains(p.sites, nil) {
			p.unlike += 2
		}
	}
	for _, s := range p.sites {
		if s == nil {
			p.missing++
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

// reportManifest reports what has become of the manifest's sites.
func (s *Set) reportManifest() {
	m := s.opts.Manifest
	if m == nil {
		return
	}
	// What was linked is the end of the way; without it, the objects are.
	linked := slices.ContainsFunc(m.images, func(im *imageSites) bool { return im.linked })
	m.images = slices.DeleteFunc(m.images, func(im *imageSites) bool { return im.linked != linked })
	for _, im := range m.images {
		for _, o := range im.outcomes {
			switch c := o.copy; {
			case o.keptIn != "":
				c.keptIn = append(c.keptIn, o.keptIn)
			case o.lost != nil:
				c.lost = append(c.lost, o.lost)
			default:
				c.complete = true
			}
		}
	}
	for _, c := range m.copies {
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

// takeUnclaimed takes a site of an image that no copy of a function has claimed.
func (m *Manifest) takeUnclaimed(key siteKey) bool {
	for _, im := range m.images {
		if im.unclaimed[key] > 0 {
			im.unclaimed[key]--
			return true
		}
	}
	return false
}

// reportAbsent reports the sites of a copy that no function of an image matches, unless they are in a
// function whose symbol was removed.
func (s *Set) reportAbsent(c *functionCopy) {
	for i := range c.sites {
		site := &c.sites[i]
		isElsewhere := func(nameless bool) bool {
			return s.opts.Manifest.takeUnclaimed(siteKey{site.Probe, site.Enabled(), site.Note != nil, nameless})
		}
		if c.symbol != "" && isElsewhere(false) || isElsewhere(true) { // a site that was in no function is in none now
			continue
		}
		rule, message := DroppedSite, "the linker has dropped its function"
		switch {
		case c.symbol == "":
			rule, message = LostSite, "no image has this site, and no function tells whether its code is there"
		case len(c.keptIn) > 0:
			message = fmt.Sprintf("%s has another copy of its function", c.keptIn[0])
		}
		f := Finding{
			Rule: rule, File: c.object, Place: fmt.Sprintf("%s+%#x", site.Section, site.Offset), Section: site.Section, Address: site.Offset,
			Function: site.Function, Symbol: site.Symbol, FunctionOffset: site.FunctionOffset,
			Probe: site.Probe, Message: message, file: len(s.files), at: image.Addr{Offset: site.Offset},
		}
		f.setSource(site)
		s.findings = append(s.findings, f)
	}
}
