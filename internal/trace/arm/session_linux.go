package arm

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/events"
	"sdtconvert/internal/trace/inject"
	"sdtconvert/internal/trace/probe"
)

// Session is what all processes of a run share.
type Session struct {
	Listing      listing.Options // which probes
	Declarations probe.Declarations
	Mangled      bool // functions of C++ and Rust have the names of their symbols
	Census       *probe.Census
	Filter       *events.Filter // nil for all events
	Traps        bool           // all sites get breakpoints
	NoTraps      bool           // no site gets one
	Collector    *events.Collector
	Life         *inject.Life
	Warn         func(error)

	named map[string]bool               // modules whose probes were said to be traced
	list  atomic.Pointer[[]*probe.Site] // by number, from 1
	files map[fileVersion][]*probe.Site
	kept  int // files and their sites
}

// Counting returns the sink, if trampolines can count for it. A run that ends after a number of events needs them all.
func (s *Session) Counting() (sink events.Counting, ok bool) {
	sink, ok = s.Collector.Sink.(events.Counting)
	return sink, ok && s.Collector.Most == 0
}

// Sites returns all sites of the run, by number from 1. Any goroutine may call it.
func (s *Session) Sites() []*probe.Site {
	if list := s.list.Load(); list != nil {
		return *list
	}
	return nil
}

// addSites numbers the sites of a process. It returns those for which there is room, and how many others there are.
func (s *Session) addSites(found []*probe.Site) (numbered []*probe.Site, left int) {
	all := slices.Clip(s.Sites())
	for _, site := range found {
		if site.File.Number == 0 && len(all) == events.MaxSites {
			left++
			continue
		}
		if site.File.Number == 0 {
			all = append(all, site.File)
			site.File.Number = uint32(len(all))
		}
		site.Number = site.File.Number
		numbered = append(numbered, site)
	}
	s.list.Store(&all)
	return numbered, left
}

// sayModules says which libraries bring probes that the user has not asked for by name.
func (s *Session) sayModules(a *Armer, found []*probe.Site) {
	if len(s.Listing.Filter.Alternatives) > 0 {
		return
	}
	counts, isNew := map[string]map[string]bool{}, false
	for _, site := range found {
		if site.Kind != arch.Probe {
			continue
		}
		module := message.Escape(site.Probe.Module)
		if counts[module] == nil {
			counts[module] = map[string]bool{}
		}
		counts[module][site.Provider+":"+site.Name] = true
	}
	var parts []string
	for _, module := range slices.Sorted(maps.Keys(counts)) {
		isNew = isNew || !s.named[module]
		parts = append(parts, fmt.Sprintf("%d of %s", len(counts[module]), module))
	}
	if s.named == nil {
		s.named = map[string]bool{}
	}
	for module := range counts {
		s.named[module] = true
	}
	if isNew && len(counts) > 1 {
		a.warn("all probes are traced: %s (name those that you want, as PROVIDER:::)", strings.Join(parts, ", "))
	}
}

// mostKept bounds the files whose sites are kept, and these sites.
const mostKept = 2 * events.MaxSites

// fileSites returns the sites of a module's file. They are kept for the next process that loads it.
func (s *Session) fileSites(m *image.Module, version fileVersion) ([]*probe.Site, error) {
	if sites, ok := s.files[version]; ok {
		return sites, nil
	}
	f := &probe.Finder{Options: s.Listing, Declarations: s.Declarations, Census: s.Census, Mangled: s.Mangled}
	err := f.Find(m)
	if version != (fileVersion{}) && err == nil {
		if s.kept += 1 + len(f.Sites); s.kept > mostKept || s.files == nil {
			s.files, s.kept = map[fileVersion][]*probe.Site{}, 1+len(f.Sites)
		}
		s.files[version] = f.Sites
	}
	return f.Sites, err
}
