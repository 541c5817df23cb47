package events

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/probe"
)

// CountSink counts the events of each probe and function, or of each key. Where it can, it has trampolines count.
type CountSink struct {
	W    io.Writer
	Keys *Keys // nil for probes and functions, also those without an event

	counts  map[string]uint64
	dropped uint64
	rest    uint64 // events of keys for which there was no room
}

// Keys are the values by which events are counted.
type Keys struct{ values []value }

// mostKeys bounds the keys that are counted.
const mostKeys = 1 << 16

// ParseKeys reads values, separated by commas: arguments, tid, pid, provider, module, function and name.
func ParseKeys(text string) (k *Keys, err error) {
	p, k := newFilterParser(text), &Keys{}
	defer func() {
		if wrong, ok := recover().(filterError); ok {
			k, err = nil, fmt.Errorf("invalid keys %q: %s", text, string(wrong))
		}
	}()
	for p.next(); ; p.next() {
		v := p.value()
		if v.isConstant {
			p.fail("%q is the same for all events", v.shown)
		}
		k.values = append(k.values, v)
		if p.token == "" {
			return k, nil
		}
		if p.token != "," {
			p.fail("unexpected %q", p.token)
		}
	}
}

// of returns the key of an event, as text.
func (k *Keys) of(e *Event) string { return strings.Join(k.parts(e), ", ") }

// parts returns the values of a key, as text.
func (k *Keys) parts(e *Event) []string {
	parts := make([]string, len(k.values))
	for i := range k.values {
		parts[i] = k.values[i].show(e)
	}
	return parts
}

// noValue is shown for what an event does not have.
const noValue = "?"

// show returns a value as lines show it, noValue if there is none.
func (v *value) show(e *Event) string {
	if v.argument != nil {
		i, ok := v.argument.Find(e.Site)
		switch {
		case !ok || i >= len(e.Values):
			return noValue
		case e.Arguments[i].Format == probe.Text && !e.Texts[i].Unreadable:
			return quote(&e.Texts[i])
		}
		return formatValue(&e.Arguments[i], e.Values[i], &e.Texts[i])
	}
	if v.text != nil {
		text, _ := v.text(e)
		return message.Escape(text)
	}
	n, ok := v.number(e)
	if !ok {
		return noValue
	}
	return strconv.FormatInt(int64(n.bits), 10)
}

// areOfSite reports whether all events of a site have the same key.
func (k *Keys) areOfSite() bool {
	return !slices.ContainsFunc(k.values, func(v value) bool { return v.ofSite == nil })
}

// ofSite returns the key of all events of a site.
func (k *Keys) ofSite(site *probe.Site) string { return k.of(&Event{Site: site}) }

// Event implements Sink.
func (s *CountSink) Event(e *Event, c *Clock) bool {
	key := e.Text
	if s.Keys != nil {
		key = s.Keys.of(e)
	}
	s.add(key, 1)
	return true
}

func (s *CountSink) add(key string, n uint64) {
	if s.counts == nil {
		s.counts = map[string]uint64{}
	}
	if _, known := s.counts[key]; !known && len(s.counts) == mostKeys {
		s.rest += n
		return
	}
	s.counts[key] += n
}

// Bins implements Counting.
func (s *CountSink) Bins(_ *probe.Site, isFiltered bool) (bins *arch.Bins, ok bool) {
	if isFiltered {
		bins = &arch.Bins{Ranges: arch.Ranges{High: 1, Width: 1}}
	}
	return bins, s.Keys == nil || s.Keys.areOfSite()
}

// Counted implements Counting.
func (s *CountSink) Counted(site *probe.Site, counts []uint64) {
	sum := uint64(0)
	for _, n := range counts {
		sum += n
	}
	switch {
	case s.Keys == nil:
		s.add(site.Text, sum)
	case sum > 0:
		s.add(s.Keys.ofSite(site), sum)
	}
}

// Dropped implements Incomplete.
func (s *CountSink) Dropped(site *probe.Site, n uint64) { s.dropped += n }

// Show implements View.
func (s *CountSink) Show() error {
	keys := slices.SortedFunc(maps.Keys(s.counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.counts[b], s.counts[a]), strings.Compare(a, b))
	})
	for _, key := range keys {
		message.Line(s.W, "%12d %s", s.counts[key], key)
	}
	writeLacking(s.W, s.dropped, "hit", "dropped")
	writeLacking(s.W, s.rest, "hit", fmt.Sprintf("made after %d other keys", mostKeys))
	return flush(s.W, nil)
}

// Clear implements View.
func (s *CountSink) Clear() { s.counts, s.dropped, s.rest = nil, 0, 0 }

// Close implements Sink.
func (s *CountSink) Close() error { return s.Show() }
