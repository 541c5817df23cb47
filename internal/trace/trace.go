// Package trace records the hits of the probes of running programs. It is a view of package sites, as listings are: it
// finds the sites of a process, and arms them.
//
// Where a site has room, the tracer writes a jump to a trampoline: code that it puts into the process, which
// writes the event into memory that both share, and goes on. The program is stopped only while its code
// changes. Elsewhere the tracer sets a breakpoint, and the program stops at each hit.
//
// This package is the loop: who is traced, and when it ends. The rooms below it are
//
//	probe     the sites of a file, their code and arguments
//	events    rings, counters, filters, values, and what becomes of them
//	ptrace    processes that are held: threads, memory, registers, stops
//	inject    code and memory of the tracer in a process, and the system calls that these take
//	arm       the form that each site gets, and its way back
package trace

import (
	"time"

	"sdtconvert/internal/listing"
	"sdtconvert/internal/trace/events"
	"sdtconvert/internal/trace/probe"
)

// Options say what is traced.
type Options struct {
	Listing      listing.Options    // which probes
	Declarations probe.Declarations // of provider files
	Mangled      bool               // functions of C++ and Rust have the names of their symbols
	Census       *probe.Census      // of all probes that the processes have
	PIDs         []int
	Program      []string  // to run, with its arguments
	Files        []uintptr // its standard streams
	Environ      []string
	Follow       bool           // children and other programs that a process becomes
	Traps        bool           // all sites get breakpoints
	NoTraps      bool           // no site gets one
	Most         uint64         // events until the end, 0 for any number
	For          time.Duration  // until the end, 0 for as long as the processes run
	Filter       *events.Filter // nil for all events
	Sink         events.Sink
	Every        time.Duration   // after which the sink shows what it has counted, 0 if that is at the end
	Clear        bool            // the sink begins anew then
	Head         func(time.Time) // called before each of these
	Warn         func(error)
	Signalled    <-chan Request // what the user asks for
}

// Request is what a signal to the tracer asks for.
type Request struct {
	End    bool // of tracing
	Signal int  // to pass on to the program, 0 for none
}

// Statistics are what a run has done.
type Statistics struct {
	Sites   []SiteStatistics
	Pauses  int
	Longest time.Duration // that threads stood still at once
	Paused  time.Duration // together
	// Abandoned counts events that a thread has begun and not finished, and Damaged rings that the program has written to.
	Abandoned, Damaged uint64
	// Untraced counts children, and programs that a process has become, which were not traced without Follow.
	Untraced int
	// ExitCode and Signal say how the program has ended, if it was run.
	ExitCode, Signal int
}

// SiteStatistics are the hits of one site.
type SiteStatistics struct {
	*probe.Site
	Hits, Dropped uint64
}
