package check

import (
	"fmt"
	"strconv"
	"strings"

	"sdtconvert/image"
	"sdtconvert/internal/manifest"
)

// match records that a copy has become an instance, and which sites the copy has lost there.
func (im *imageSites) match(c *fileChecker, p *pair) error {
	missing := &lost{sameSize: p.sameSize}
	for i, s := range p.sites {
		want := &p.copy.sites[i]
		if s != nil {
			im.used[s.index] = true
		}
		var f *Finding
		var err error
		switch {
		case s == nil:
			f, err = c.lostSite(p, want)
		case want.HasNote && c.noteAt[s.at] == nil && !c.wantsNotes && !c.link.brokenNotes[c.scope()]:
			f, err = c.finding(MissingNote, s.at, want.Probe, "the %s of %s at %s+%#x had a note, and has none here", want.Kind, p.copy.object, want.Section, want.Offset)
		default:
			continue
		}
		if err != nil {
			return err
		}
		missing.findings = append(missing.findings, *f)
	}
	if len(missing.findings) == 0 {
		missing = nil
	}
	im.outcomes = append(im.outcomes, outcome{copy: p.copy, lost: missing})
	return nil
}

// lostSite returns the finding for a site that an instance lacks. Its address is the function's start,
// because other code may be at the site's old place. Its line is the manifest's, if known.
func (c *fileChecker) lostSite(p *pair, site *manifest.Site) (*Finding, error) {
	start := image.Addr{Section: p.instance.Section, Offset: p.instance.Start}
	f, err := c.finding(LostSite, start, site.Probe, "the %s of %s at %s+%#x has no %s", site.Kind, p.copy.object, site.Section, site.Offset, sourceKind(site))
	if err == nil {
		f.setSource(site)
	}
	return f, err
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

// sourceKind names what describes a site.
func sourceKind(site *manifest.Site) string {
	if site.Note != nil {
		return "note"
	}
	return "record"
}

// reportAbsent reports the sites of a copy that no function of an image matches, unless they are in a
// function whose symbol was removed.
func (s *Set) reportAbsent(c *functionCopy) {
	for i := range c.sites {
		site := &c.sites[i]
		isElsewhere := func(nameless bool) bool {
			return s.manifestDiff.takeUnclaimed(siteKey{site.Probe, site.Enabled(), site.Note != nil, nameless})
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
