package events

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/probe"
)

// CountSink counts the events of each probe and function, or of each key.
type CountSink struct {
	Counts map[string]uint64
	Keys   *Keys     // nil for probes and functions, whose counts the caller writes
	W      io.Writer // for the counts of keys

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
func (k *Keys) of(e *Event) string {
	parts := make([]string, len(k.values))
	for i := range k.values {
		parts[i] = k.values[i].show(e)
	}
	return strings.Join(parts, ", ")
}

// show returns a value as lines show it, ? if there is none.
func (v *value) show(e *Event) string {
	if v.argument != nil {
		i, ok := v.argument.Find(e.Site)
		switch {
		case !ok || i >= len(e.Values):
			return "?"
		case e.Arguments[i].Format == probe.Text && !e.Texts[i].Unreadable:
			return quote(&e.Texts[i])
		}
		return formatValue(&e.Arguments[i], e.Values[i], &e.Texts[i])
	}
	if v.text != nil {
		text, _ := v.text(e)
		return message.Escape(text)
	}
	n, _, ok := v.number(e)
	if !ok {
		return "?"
	}
	return strconv.FormatInt(int64(n), 10)
}

// Event implements Sink.
func (s *CountSink) Event(e *Event, c *Clock) bool {
	if s.Counts == nil {
		s.Counts = map[string]uint64{}
	}
	key := e.Text
	if s.Keys != nil {
		key = s.Keys.of(e)
	}
	if _, known := s.Counts[key]; !known && len(s.Counts) == mostKeys {
		s.rest++
		return true
	}
	s.Counts[key]++
	return true
}

// Dropped implements Incomplete.
func (s *CountSink) Dropped(site *probe.Site, n uint64) { s.dropped += n }

// Close implements Sink.
func (s *CountSink) Close() error {
	if s.Keys == nil {
		return nil
	}
	keys := slices.SortedFunc(maps.Keys(s.Counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(s.Counts[b], s.Counts[a]), strings.Compare(a, b))
	})
	for _, key := range keys {
		message.Line(s.W, "%12d %s", s.Counts[key], key)
	}
	writeLacking(s.W, s.dropped, "hit", "dropped")
	writeLacking(s.W, s.rest, "hit", fmt.Sprintf("made after %d other keys", mostKeys))
	return nil
}
