package events

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/probe"
)

// Histogram counts numbers in ranges.
type Histogram struct {
	arch.Ranges
	counts []uint64 // by range, nil if all are 0
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
func (h *Histogram) add(value uint64, signed bool) { h.addCount(h.Of(value, signed), 1) }

// addCount counts n numbers of a range.
func (h *Histogram) addCount(index int, n uint64) {
	if h.counts == nil {
		h.counts = make([]uint64, h.Count())
	}
	h.counts[index] += n
}

// name shows the bounds of a range.
func (h *Histogram) name(index int) string {
	power := func(n int) string {
		if n >= 10 {
			return fmt.Sprintf("%d%c", uint64(1)<<(n%10), " KMGTPE"[n/10])
		}
		return strconv.FormatUint(1<<n, 10)
	}
	zero := h.Of(0, true)
	switch n := index - zero; {
	case h.Width > 0 && index == 0:
		return fmt.Sprintf("(..., %d)", h.Low)
	case h.Width > 0 && index == h.Unread()-1:
		return fmt.Sprintf("[%d, ...)", h.High)
	case h.Width > 0:
		low := h.Low + int64(index-1)*h.Width
		if low > h.High-h.Width { // also where the sum has no room
			return fmt.Sprintf("[%d, %d)", low, h.High)
		}
		return fmt.Sprintf("[%d, %d)", low, low+h.Width)
	case n == 0:
		return "[0, 1)"
	case n < 0:
		return fmt.Sprintf("(-%s, -%s]", power(-n), power(-n-1))
	default:
		return fmt.Sprintf("[%s, %s)", power(n-1), power(n))
	}
}

// isEmpty reports whether nothing was counted that can be drawn.
func (h *Histogram) isEmpty() bool {
	return h.counts == nil || !slices.ContainsFunc(h.counts[:h.Unread()], func(n uint64) bool { return n > 0 })
}

// write draws the ranges from the first to the last that has anything.
func (h *Histogram) write(w io.Writer) {
	if h.isEmpty() {
		return
	}
	const bar = 50
	counts := h.counts[:h.Unread()]
	most, last := slices.Max(counts), len(counts)-1
	for counts[last] == 0 {
		last--
	}
	first := slices.IndexFunc(counts, func(n uint64) bool { return n > 0 })
	for i, count := range counts[first : last+1] {
		length := int(float64(count) / float64(most) * bar)
		fmt.Fprintf(w, "%20s %10d |%s%s|\n", h.name(first+i), count, strings.Repeat("@", length), strings.Repeat(" ", bar-length))
	}
}

// HistogramSink draws, for each probe and function, a histogram of an argument. Where it can, it has trampolines count.
type HistogramSink struct {
	W        io.Writer
	Argument Reference
	Empty    Histogram

	histograms map[string]*Histogram
	dropped    map[string]uint64
}

// of returns the histogram of a site.
func (s *HistogramSink) of(site *probe.Site) *Histogram {
	if s.histograms == nil {
		s.histograms = map[string]*Histogram{}
	}
	h := s.histograms[site.Text]
	if h == nil {
		copied := s.Empty
		h = &copied
		s.histograms[site.Text] = h
	}
	return h
}

// Event implements Sink.
func (s *HistogramSink) Event(e *Event, c *Clock) bool {
	if _, has := s.Argument.Find(e.Site); !has {
		return true
	}
	h := s.of(e.Site)
	if n, signed, ok := s.Argument.number(e); ok {
		h.add(n, signed)
	} else {
		h.addCount(h.Unread(), 1)
	}
	return true
}

// Bins implements Counting.
func (s *HistogramSink) Bins(site *probe.Site) *arch.Bins {
	i, has := s.Argument.Find(site)
	if !has {
		return nil
	}
	a, traced := &site.Arguments[i], &site.Layout.Arguments[i]
	b := &arch.Bins{Ranges: s.Empty.Ranges, Operand: traced.Operand, MayFault: traced.MayFault}
	if a.Format == probe.Unreadable {
		b.Operand = arch.Operand{}
	}
	b.Signed = b.Signed && a.Format != probe.Text
	return b
}

// Counted implements Counting.
func (s *HistogramSink) Counted(site *probe.Site, counts []uint64) {
	h := s.of(site)
	for i, n := range counts[:min(len(counts), h.Count())] {
		h.addCount(i, n)
	}
}

// Dropped implements Incomplete.
func (s *HistogramSink) Dropped(site *probe.Site, n uint64) {
	if s.dropped == nil {
		s.dropped = map[string]uint64{}
	}
	if _, has := s.Argument.Find(site); has {
		s.of(site)
		s.dropped[site.Text] += n
	}
}

// Close implements Sink.
func (s *HistogramSink) Close() error {
	hasDrawn, lacking := false, uint64(0)
	for _, name := range slices.Sorted(maps.Keys(s.histograms)) {
		h, dropped := s.histograms[name], s.dropped[name]
		if h.counts == nil && dropped == 0 {
			continue
		}
		fmt.Fprintf(s.W, "%s %s\n", name, &s.Argument)
		h.write(s.W)
		hasDrawn = hasDrawn || !h.isEmpty()
		writeLacking(s.W, dropped, "hit", "dropped")
		if lacking += dropped; h.counts != nil {
			writeLacking(s.W, h.counts[h.Unread()], "hit", "made with an argument that could not be read")
		}
	}
	switch {
	case !hasDrawn:
		return fmt.Errorf("no probe with a number %s has fired", &s.Argument)
	case lacking > 0:
		return fmt.Errorf("the histogram lacks %s that the tracer could not read in time", message.Plural(int(lacking), "hit"))
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
	if !s.histogram.isEmpty() {
		fmt.Fprintln(s.W, "nanoseconds")
		s.histogram.write(s.W)
	}
	if s.dropped > 0 {
		writeLacking(s.W, s.dropped, "hit", "dropped")
		fmt.Fprintln(s.W, "times may be too long: a hit that is missing joins two intervals")
	}
	writeLacking(s.W, s.forgotten, "thread", "between the probes for too long")
	writeLacking(s.W, s.unknown, "hit", "made by a thread whose ID is not known")
	if s.histogram.isEmpty() {
		return errors.New("no thread has reached the second probe after the first")
	}
	return nil
}
