package events

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"sdtconvert/internal/listing"
	"sdtconvert/internal/trace/probe"
)

// BetweenSink draws histograms of the time, in nanoseconds, from one probe to another of the same thread, or of the same key.
type BetweenSink struct {
	W        io.Writer
	From, To listing.Pattern
	Pairs    *Keys         // by which hits of the two belong together, nil for threads
	Keys     *Keys         // of histograms, nil for one of all
	Slices   *PerfettoSink // for a slice of each pair in the place of histograms, nil for none

	begun     map[pairKey]beginning // who has reached From
	forgotten uint64                // of them, as there were too many
	unknown   uint64                // events that do not say their thread, or have no key
	dropped   uint64                // hits of both probes
	set       histogramSet
	empty     Histogram
	hasDrawn  bool
}

// pairKey is a thread of a process that has rings of its own, or a key. In two processes, threads may have one ID for themselves.
type pairKey struct {
	process int
	thread  int32
	key     string
}

// beginning is a hit of the first probe.
type beginning struct {
	time uint64
	keys []string // of its histogram, "" for what the event does not have

	slice sliceStart
}

// mostPairs bounds what is between two probes.
const mostPairs = 1 << 16

// parseBetween reads two probes, separated by a comma.
func parseBetween(text string) (from, to listing.Pattern, err error) {
	a, b, ok := strings.Cut(text, ",")
	if !ok || a == "" || b == "" {
		return from, to, fmt.Errorf("invalid pair of probes %q: want PROBE,PROBE", text)
	}
	from, err = listing.ParsePattern(a)
	if err == nil {
		to, err = listing.ParsePattern(b)
	}
	return from, to, err
}

// pair returns by what an event finds its pair.
func (s *BetweenSink) pair(e *Event) (key pairKey, ok bool) {
	if s.Pairs == nil {
		return pairKey{process: e.Process.ID, thread: e.Thread}, e.Thread != 0
	}
	parts := s.Pairs.parts(e)
	return pairKey{key: strings.Join(parts, ", ")}, !slices.Contains(parts, noValue)
}

// Event implements Sink.
func (s *BetweenSink) Event(e *Event, c *Clock) bool {
	isFrom, isTo := e.Match(&s.From), e.Match(&s.To)
	switch {
	case isFrom || isTo:
	case s.Slices != nil:
		return s.Slices.Event(e, c)
	default:
		return true
	}
	key, ok := s.pair(e)
	if !ok {
		s.unknown++
		return true
	}
	if s.begun == nil {
		s.begun = map[pairKey]beginning{}
	}
	if begun, ok := s.begun[key]; ok && isTo {
		if s.Slices != nil {
			s.Slices.end(&begun, e, c)
		} else {
			nanoseconds := uint64(c.since(e.Time) - c.since(begun.time))
			s.set.add(s.name(&begun, e), &s.empty, s.empty.Of(nanoseconds, true), 1)
		}
		delete(s.begun, key)
	}
	if isFrom {
		if len(s.begun) == mostPairs {
			s.forgetOldest()
		}
		begun := beginning{time: e.Time}
		if s.Keys != nil {
			begun.keys = s.Keys.parts(e)
		}
		if s.Slices != nil {
			begun.slice = s.Slices.begin(e)
		}
		s.begun[key] = begun
	}
	return true
}

// name returns the name of the histogram of a pair: values of the first hit, or of the second one if the first has none.
func (s *BetweenSink) name(begun *beginning, e *Event) string {
	if s.Keys == nil {
		return ""
	}
	parts := s.Keys.parts(e)
	for i, value := range begun.keys {
		if value != noValue {
			parts[i] = value
		}
	}
	return strings.Join(parts, ", ") + " "
}

// forgetOldest forgets what has been between the probes for the longest time: most threads have ended there.
func (s *BetweenSink) forgetOldest() {
	var times []uint64
	for begun := range maps.Values(s.begun) {
		times = append(times, begun.time)
	}
	slices.Sort(times)
	middle := times[len(times)/2]
	maps.DeleteFunc(s.begun, func(_ pairKey, begun beginning) bool { return begun.time <= middle })
	s.forgotten += uint64(len(times) - len(s.begun))
}

// Dropped implements Incomplete.
func (s *BetweenSink) Dropped(site *probe.Site, n uint64) {
	if site.Match(&s.From) || site.Match(&s.To) {
		s.dropped += n
	}
}

// Show implements View.
func (s *BetweenSink) Show() error {
	for _, name := range slices.Sorted(maps.Keys(s.set.histograms)) {
		fmt.Fprintln(s.W, name+"nanoseconds")
		s.set.histograms[name].write(s.W)
		s.hasDrawn = true
	}
	if s.dropped > 0 {
		writeLacking(s.W, s.dropped, "hit", "dropped")
		fmt.Fprintln(s.W, "times may be too long: a hit that is missing joins two intervals")
	}
	writeLacking(s.W, s.forgotten, "pair", "not complete for too long")
	if s.Pairs == nil {
		writeLacking(s.W, s.unknown, "hit", "made by a thread whose ID is not known")
	} else {
		writeLacking(s.W, s.unknown, "hit", "made without a key")
	}
	writeLacking(s.W, s.set.rest, "pair", fmt.Sprintf("made after %d other keys", mostHistograms))
	return flush(s.W, nil)
}

// Clear implements View. Pairs that have begun go on.
func (s *BetweenSink) Clear() { s.set, s.dropped, s.forgotten, s.unknown = histogramSet{}, 0, 0, 0 }

// Flush implements Flusher.
func (s *BetweenSink) Flush() error {
	if s.Slices == nil {
		return nil
	}
	return s.Slices.Flush()
}

// Close implements Sink.
func (s *BetweenSink) Close() error {
	if s.Slices != nil {
		return s.Slices.Close()
	}
	err := s.Show()
	if err == nil && !s.hasDrawn {
		err = errors.New("nothing has reached the second probe after the first")
	}
	return err
}
