package events

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"sdtconvert/arch"
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

// indexOf returns the range of a number.
func (h *Histogram) indexOf(n number) int {
	if !n.isFloat {
		return h.Of(n.bits, n.signed)
	}
	whole := math.Floor(n.float())
	if h.Width == 0 {
		whole = math.Trunc(n.float()) // ranges of negative numbers mirror those of others
	}
	switch {
	case math.IsNaN(whole):
		return h.Unread()
	case whole >= 1<<64:
		return h.Of(math.MaxUint64, false)
	case whole >= 0:
		return h.Of(uint64(whole), false)
	}
	return h.Of(uint64(int64(max(whole, math.MinInt64))), true)
}

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

// HistogramSink draws a histogram of an argument for each probe and function, or for each key. Where it can, it has trampolines count.
type HistogramSink struct {
	W        io.Writer
	Argument Reference
	Empty    Histogram
	Keys     *Keys // nil for probes and functions

	set      histogramSet
	dropped  map[string]uint64
	hasDrawn bool
	lacking  uint64 // dropped hits of all times
}

// histogramSet are histograms by name.
type histogramSet struct {
	histograms map[string]*Histogram
	rest       uint64 // numbers of names for which there was no room
}

// mostHistograms bounds the histograms of a set.
const mostHistograms = 1 << 12

// of returns the histogram of a name, nil if there is no room.
func (s *histogramSet) of(name string, empty *Histogram) *Histogram {
	if s.histograms == nil {
		s.histograms = map[string]*Histogram{}
	}
	h := s.histograms[name]
	if h == nil && len(s.histograms) < mostHistograms {
		copied := *empty
		h = &copied
		s.histograms[name] = h
	}
	return h
}

// add counts numbers of a range of a name.
func (s *histogramSet) add(name string, empty *Histogram, index int, n uint64) {
	if h := s.of(name, empty); h != nil {
		h.addCount(index, n)
	} else {
		s.rest += n
	}
}

// Event implements Sink.
func (s *HistogramSink) Event(e *Event, c *Clock) bool {
	if _, has := s.Argument.Find(e.Site); !has {
		return true
	}
	name, index := e.Text, s.Empty.Unread()
	if s.Keys != nil {
		name = s.Keys.of(e)
	}
	if n, ok := s.Argument.number(e); ok {
		index = s.Empty.indexOf(n)
	}
	s.set.add(name, &s.Empty, index, 1)
	return true
}

// siteName returns the name of a site's histogram, as far as it does not depend on the event.
func (s *HistogramSink) siteName(site *probe.Site) string {
	if s.Keys == nil {
		return site.Text
	}
	return s.Keys.ofSite(site)
}

// Bins implements Counting.
func (s *HistogramSink) Bins(site *probe.Site, _ bool) (bins *arch.Bins, ok bool) {
	i, has := s.Argument.Find(site)
	switch {
	case !has:
		return nil, true
	case s.Keys != nil && !s.Keys.areOfSite():
		return nil, false
	}
	a, traced := &site.Arguments[i], &site.Layout.Arguments[i]
	if a.Format == probe.Float {
		return nil, false
	}
	bins = &arch.Bins{Ranges: s.Empty.Ranges, Operand: traced.Operand, MayFault: traced.MayFault}
	if a.Format == probe.Unreadable {
		bins.Operand = arch.Operand{}
	}
	bins.Signed = bins.Signed && a.Format != probe.Text
	return bins, true
}

// Counted implements Counting.
func (s *HistogramSink) Counted(site *probe.Site, counts []uint64) {
	if _, has := s.Argument.Find(site); !has {
		return
	}
	for i, n := range counts[:min(len(counts), s.Empty.Count())] {
		if n > 0 {
			s.set.add(s.siteName(site), &s.Empty, i, n)
		}
	}
}

// Dropped implements Incomplete.
func (s *HistogramSink) Dropped(site *probe.Site, n uint64) {
	if _, has := s.Argument.Find(site); !has {
		return
	}
	if s.dropped == nil {
		s.dropped = map[string]uint64{}
	}
	s.lacking += n
	if s.Keys == nil {
		s.set.of(site.Text, &s.Empty)
		s.dropped[site.Text] += n
	} else {
		s.dropped[""] += n
	}
}

// Show implements View.
func (s *HistogramSink) Show() error {
	for _, name := range slices.Sorted(maps.Keys(s.set.histograms)) {
		h := s.set.histograms[name]
		fmt.Fprintf(s.W, "%s %s\n", name, &s.Argument)
		h.write(s.W)
		s.hasDrawn = s.hasDrawn || !h.isEmpty()
		writeLacking(s.W, s.dropped[name], "hit", "dropped")
		if h.counts != nil {
			writeLacking(s.W, h.counts[h.Unread()], "hit", "made with an argument that could not be read")
		}
	}
	writeLacking(s.W, s.dropped[""], "hit", "dropped")
	writeLacking(s.W, s.set.rest, "hit", fmt.Sprintf("made after %d other keys", mostHistograms))
	return flush(s.W, nil)
}

// Clear implements View.
func (s *HistogramSink) Clear() { s.set, s.dropped = histogramSet{}, nil }

// Close implements Sink.
func (s *HistogramSink) Close() error {
	err := s.Show()
	switch {
	case err != nil:
		return err
	case !s.hasDrawn:
		return fmt.Errorf("no probe with a number %s has fired", &s.Argument)
	case s.lacking > 0:
		return fmt.Errorf("the histogram lacks %s that the tracer could not read in time", message.Plural(int(s.lacking), "hit"))
	}
	return nil
}

// writeLacking writes how much is not in what was drawn.
func writeLacking(w io.Writer, n uint64, what, why string) {
	if n > 0 {
		fmt.Fprintf(w, "not counted: %s that %s %s\n", message.Plural(int(n), what), map[bool]string{true: "was", false: "were"}[n == 1], why)
	}
}
