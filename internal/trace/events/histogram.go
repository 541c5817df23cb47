package events

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"sdtconvert/internal/listing"
	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/probe"
)

// Histogram counts numbers in ranges: powers of two, or of one width.
type Histogram struct {
	// Low, High and Width are of ranges of one width; Width is 0 for powers of two.
	Low, High, Width int64
	counts           map[int]uint64 // by range
	total            uint64
}

// parseLinear reads ARG,LOW,HIGH,WIDTH.
func parseLinear(text string) (argument Reference, h Histogram, err error) {
	parts := strings.Split(text, ",")
	if len(parts) != 4 {
		return argument, h, fmt.Errorf("invalid histogram %q: want ARG,LOW,HIGH,WIDTH", text)
	}
	if argument, err = parseReference(parts[0]); err != nil {
		return argument, h, err
	}
	for i, to := range []*int64{&h.Low, &h.High, &h.Width} {
		if *to, err = strconv.ParseInt(parts[i+1], 0, 64); err != nil {
			return argument, h, fmt.Errorf("invalid histogram %q: %q is not a number", text, parts[i+1])
		}
	}
	if h.Width <= 0 || h.High <= h.Low || uint64(h.High-h.Low)/uint64(h.Width) > 1000 {
		return argument, h, fmt.Errorf("invalid histogram %q: want LOW below HIGH, and at most 1000 ranges", text)
	}
	return argument, h, nil
}

// add counts a number.
func (h *Histogram) add(value uint64, signed bool) {
	if h.counts == nil {
		h.counts = map[int]uint64{}
	}
	h.counts[h.rangeOf(value, signed)]++
	h.total++
}

// rangeOf returns the number of the range that holds a value. Of powers of two, range n begins at 2^(n-1), and the negative
// ones mirror that.
func (h *Histogram) rangeOf(value uint64, signed bool) int {
	isNegative := signed && int64(value) < 0
	switch {
	case h.Width == 0 && isNegative:
		return -bits.Len64(-value)
	case h.Width == 0:
		return bits.Len64(value)
	case compareNumbers(value, signed, uint64(h.Low), true) < 0:
		return -1
	case compareNumbers(value, signed, uint64(h.High), true) >= 0:
		return h.last()
	}
	return int((value - uint64(h.Low)) / uint64(h.Width))
}

// last returns the number of the range of one width that has what is too large.
func (h *Histogram) last() int { return int(uint64(h.High-h.Low+h.Width-1) / uint64(h.Width)) }

// name shows the bounds of a range.
func (h *Histogram) name(n int) string {
	power := func(n int) string {
		if n >= 10 {
			return fmt.Sprintf("%d%c", uint64(1)<<(n%10), " KMGTPE"[n/10])
		}
		return strconv.FormatUint(1<<n, 10)
	}
	switch {
	case h.Width > 0 && n < 0:
		return fmt.Sprintf("(..., %d)", h.Low)
	case h.Width > 0 && n == h.last():
		return fmt.Sprintf("[%d, ...)", h.High)
	case h.Width > 0:
		low := h.Low + int64(n)*h.Width
		return fmt.Sprintf("[%d, %d)", low, min(low+h.Width, h.High))
	case n == 0:
		return "[0, 1)"
	case n < 0:
		return fmt.Sprintf("(-%s, -%s]", power(-n), power(-n-1))
	}
	return fmt.Sprintf("[%s, %s)", power(n-1), power(n))
}

// write draws the ranges from the first to the last that has anything.
func (h *Histogram) write(w io.Writer) {
	if h.total == 0 {
		return
	}
	const bar = 50
	most := slices.Max(slices.Collect(maps.Values(h.counts)))
	ranges := slices.Sorted(maps.Keys(h.counts))
	for n := ranges[0]; n <= ranges[len(ranges)-1]; n++ {
		count := h.counts[n]
		length := int(count * bar / most)
		fmt.Fprintf(w, "%20s %10d |%s%s|\n", h.name(n), count, strings.Repeat("@", length), strings.Repeat(" ", bar-length))
	}
}

// HistogramSink draws, for each probe and function, a histogram of an argument.
type HistogramSink struct {
	W        io.Writer
	Argument Reference
	Empty    Histogram

	histograms map[string]*Histogram
	unread     map[string]uint64 // hits whose argument could not be read
	dropped    map[string]uint64
}

// Event implements Sink.
func (s *HistogramSink) Event(e *Event, c *Clock) bool {
	if s.histograms == nil {
		s.histograms, s.unread = map[string]*Histogram{}, map[string]uint64{}
	}
	n, signed, ok := s.Argument.number(e)
	if !ok {
		if _, has := s.Argument.Find(e.Site); has {
			s.unread[e.Text]++
		}
		return true
	}
	h := s.histograms[e.Text]
	if h == nil {
		copied := s.Empty
		h = &copied
		s.histograms[e.Text] = h
	}
	h.add(n, signed)
	return true
}

// Dropped implements Incomplete.
func (s *HistogramSink) Dropped(site *probe.Site, n uint64) {
	if s.dropped == nil {
		s.dropped = map[string]uint64{}
	}
	if _, has := s.Argument.Find(site); has {
		s.dropped[site.Text] += n
	}
}

// Close implements Sink.
func (s *HistogramSink) Close() error {
	all := map[string]bool{}
	for _, counts := range []map[string]uint64{s.unread, s.dropped} {
		for name := range counts {
			all[name] = true
		}
	}
	for name := range s.histograms {
		all[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(s.W, "%s %s\n", name, &s.Argument)
		if h := s.histograms[name]; h != nil {
			h.write(s.W)
		}
		writeLacking(s.W, s.dropped[name], "hit", "dropped")
		writeLacking(s.W, s.unread[name], "hit", "made with an argument that could not be read")
	}
	if len(s.histograms) == 0 {
		return fmt.Errorf("no probe with a number %s has fired", &s.Argument)
	}
	return nil
}

// writeLacking writes how much is not in what was drawn.
func writeLacking(w io.Writer, n uint64, what, why string) {
	if n > 0 {
		fmt.Fprintf(w, "not counted: %s that %s %s\n", message.Plural(int(n), what), map[bool]string{true: "was", false: "were"}[n == 1], why)
	}
}

// BetweenSink draws a histogram of the time, in nanoseconds, from one probe to another of the same thread.
type BetweenSink struct {
	W        io.Writer
	From, To listing.Pattern

	begun     map[threadKey]uint64 // when a thread reached From
	forgotten uint64               // threads that were forgotten, as there were too many
	unknown   uint64               // events that do not say their thread
	dropped   uint64               // hits of both probes
	histogram Histogram
}

// threadKey is a thread of a process that has rings of its own. In two processes, threads may have one ID for themselves.
type threadKey struct {
	process int
	thread  int32
}

// mostThreads bounds the threads that are between two probes.
const mostThreads = 1 << 16

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

// Event implements Sink.
func (s *BetweenSink) Event(e *Event, c *Clock) bool {
	if s.begun == nil {
		s.begun = map[threadKey]uint64{}
	}
	if e.Thread == 0 {
		s.unknown++
		return true
	}
	key := threadKey{e.Process.ID, e.Thread}
	if begun, ok := s.begun[key]; ok && s.To.Match(e.Provider, e.Probe.Module, e.Function, e.Name) {
		s.histogram.add(uint64(c.since(e.Time)-c.since(begun)), true)
		delete(s.begun, key)
	}
	if s.From.Match(e.Provider, e.Probe.Module, e.Function, e.Name) {
		if len(s.begun) == mostThreads {
			s.forgetOldest()
		}
		s.begun[key] = e.Time
	}
	return true
}

// forgetOldest forgets the threads that have been between the probes for the longest time: most have ended there.
func (s *BetweenSink) forgetOldest() {
	times := slices.Sorted(maps.Values(s.begun))
	middle := times[len(times)/2]
	maps.DeleteFunc(s.begun, func(_ threadKey, begun uint64) bool { return begun <= middle })
	s.forgotten += uint64(len(times) - len(s.begun))
}

// Dropped implements Incomplete.
func (s *BetweenSink) Dropped(site *probe.Site, n uint64) {
	for _, pattern := range []listing.Pattern{s.From, s.To} {
		if pattern.Match(site.Provider, site.Probe.Module, site.Function, site.Name) {
			s.dropped += n
			return
		}
	}
}

// Close implements Sink.
func (s *BetweenSink) Close() error {
	if s.histogram.total > 0 {
		fmt.Fprintln(s.W, "nanoseconds")
		s.histogram.write(s.W)
	}
	if s.dropped > 0 {
		writeLacking(s.W, s.dropped, "hit", "dropped")
		fmt.Fprintln(s.W, "times may be too long: a hit that is missing joins two intervals")
	}
	writeLacking(s.W, s.forgotten, "thread", "between the probes for too long")
	writeLacking(s.W, s.unknown, "hit", "made by a thread whose ID is not known")
	if s.histogram.total == 0 {
		return errors.New("no thread has reached the second probe after the first")
	}
	return nil
}
