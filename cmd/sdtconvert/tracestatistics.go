package main

// What trace prints when it ends.

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"syscall"
	"time"

	"sdtconvert/internal/message"
	"sdtconvert/internal/process"
	"sdtconvert/internal/trace"
	"sdtconvert/internal/trace/probe"
)

// end returns the status of the program, or why the run has failed.
func (f *traceFlags) end(p *program, o *trace.Options, s *trace.Statistics, err error) (failed bool, _ error) {
	for i, pattern := range f.requiredPatterns {
		fired := slices.ContainsFunc(s.Sites, func(s trace.SiteStatistics) bool {
			return s.Hits+s.Dropped > 0 && s.Match(&pattern)
		})
		if !fired {
			message.Error(p.Stderr, fmt.Errorf("the probe %s has not fired", f.required[i]))
			failed = true
		}
	}
	if err == nil && f.explainNothing(p.Stderr, o, s) && !f.allowNone {
		failed = true
	}
	status := process.Status{Code: s.ExitCode}
	if s.Signal != 0 {
		status.Signal = syscall.Signal(s.Signal)
	}
	if err != nil || status == (process.Status{}) {
		return failed, err
	}
	return false, &statusError{status: p.End(status)}
}

// explainNothing prints why the user has not seen what the command line asks for. It returns true if a probe, or what a filter
// compares, was nowhere in the run.
func (f *traceFlags) explainNothing(w io.Writer, o *trace.Options, s *trace.Statistics) (missing bool) {
	for _, line := range o.Census.Unmatched() {
		message.Line(w, "sdtconvert: %s", line)
	}
	missing = o.Census.MissesPattern() || o.Census.IsEmpty() && len(o.Census.Unconverted()) > 0
	var sites []*probe.Site
	hits := uint64(0)
	for _, site := range s.Sites {
		sites, hits = append(sites, site.Site), hits+site.Hits+site.Dropped
	}
	if err := o.Filter.Never(sites); err != nil {
		message.Error(w, err)
		missing = true
	}
	for _, provider := range slices.Sorted(maps.Keys(f.declared)) {
		if !o.Census.IsEmpty() && !o.Census.HasProvider(provider) {
			message.Line(w, "sdtconvert: -s declares the provider %s, of which the program has no probe", provider)
		}
	}
	if hits == 0 && s.Untraced > 0 && !f.follow {
		message.Line(w, "sdtconvert: children and other programs that were not traced: %d; -f follows them", s.Untraced)
	}
	return missing
}

// probeCount is the hits of a probe in a function.
type probeCount struct {
	name          string
	hits, dropped uint64
	breakpoints   int
}

// probeCounts adds up sites, by probe and function: those with most hits come first.
func probeCounts(s *trace.Statistics) (counts []*probeCount) {
	byName := map[string]*probeCount{}
	for _, site := range s.Sites {
		c := byName[site.Text]
		if c == nil {
			c = &probeCount{name: site.Text}
			byName[site.Text] = c
			counts = append(counts, c)
		}
		c.hits, c.dropped = c.hits+site.Hits, c.dropped+site.Dropped
		if site.Breakpoint {
			c.breakpoints++
		}
	}
	slices.SortFunc(counts, func(a, b *probeCount) int {
		return cmp.Or(cmp.Compare(b.hits+b.dropped, a.hits+a.dropped), strings.Compare(a.name, b.name))
	})
	return counts
}

// printStatistics prints what the run has done.
func printStatistics(w io.Writer, s *trace.Statistics) {
	var hits, dropped uint64
	silent, breakpoints := 0, 0
	counts := probeCounts(s)
	for _, c := range counts {
		hits, dropped, breakpoints = hits+c.hits, dropped+c.dropped, breakpoints+c.breakpoints
		if c.hits+c.dropped == 0 {
			silent++
		}
	}
	message.Line(w, "sdtconvert: %s, %d dropped; %s, %d never fired; threads stood still %s, at most %s at once",
		message.Plural(int(hits+dropped), "hit"), dropped, message.Plural(len(counts), "probe"), silent, milliseconds(s.Paused), milliseconds(s.Longest))
	printProbes(w, counts, func(c *probeCount) string {
		if c.dropped == 0 {
			return ""
		}
		return fmt.Sprintf("%d of %s dropped: %s", c.dropped, message.Plural(int(c.hits+c.dropped), "hit"), c.name)
	})
	if breakpoints > 0 {
		message.Line(w, "sdtconvert: %s armed by breakpoints, at which the program stops:", message.Plural(breakpoints, "site"))
		printProbes(w, counts, func(c *probeCount) string {
			if c.breakpoints == 0 {
				return ""
			}
			return "  " + c.name
		})
	}
	if s.Abandoned+s.Damaged > 0 {
		message.Line(w, "sdtconvert: events begun and not finished: %d; events that made no sense: %d", s.Abandoned, s.Damaged)
	}
}

// mostProbes is how many probes the statistics name of each kind.
const mostProbes = 20

// printProbes prints a line for each probe that has one, up to a number.
func printProbes(w io.Writer, counts []*probeCount, line func(c *probeCount) string) {
	printed, more := 0, 0
	for _, c := range counts {
		switch text := line(c); {
		case text == "":
		case printed == mostProbes:
			more++
		default:
			printed++
			message.Line(w, "sdtconvert: %s", text)
		}
	}
	if more > 0 {
		message.Line(w, "sdtconvert: and %s", message.Plural(more, "other probe"))
	}
}

func milliseconds(d time.Duration) string {
	return fmt.Sprintf("%.2f ms", float64(d)/float64(time.Millisecond))
}
