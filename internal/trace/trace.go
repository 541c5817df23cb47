// Package trace records the hits of the probes of running programs. It is a view of package sites, as listings are: it
// finds the sites of a process, and arms them.
//
// Where a site has room, the tracer writes a jump to a trampoline: code that it puts into the process, which
// writes the event into memory that both share, and goes on. The program is stopped only while its code
// changes. Elsewhere the tracer sets a breakpoint, and the program stops at each hit.
//
//	Run              the loop over what happens to the traced processes (engine_linux.go), from their start (start_linux.go), with
//	                 what they fork and become (fork_linux.go)
//	tracee           one process and its threads (process_linux.go), its armed sites (arm_linux.go, trap_linux.go,
//	                 disarm_linux.go), the system calls that it makes for the tracer (calls_linux.go, seccomp_linux.go)
//	area             the code that the tracer has mapped there (area_linux.go)
//	ringReader       events, as trampolines have written them (ring.go, shared_linux.go)
//	collector        puts the events of all rings in order, and hands them to a Sink (collector.go)
package trace

import (
	"time"

	"sdtconvert/internal/listing"
)

// Options say what is traced.
type Options struct {
	Listing      listing.Options // which probes
	Declarations Declarations    // of provider files
	PIDs         []int
	Program      []string  // to run, with its arguments
	Files        []uintptr // its standard streams
	Environ      []string
	Follow       bool          // children and other programs that a process becomes
	Count        bool          // hits are counted, and no event is made
	Traps        bool          // all sites get breakpoints
	Most         uint64        // events until the end, 0 for any number
	For          time.Duration // until the end, 0 for as long as the processes run
	Filter       *Filter       // nil for all events
	Sink         Sink          // nil if hits are counted
	Warn         func(error)
	Signalled    <-chan Request // what the user asks for
}

// Request is what a signal to the tracer asks for.
type Request struct {
	End    bool // of tracing
	Signal int  // to pass on to the program, 0 for none
}

// Sink takes events.
type Sink interface {
	// Event takes an event. It is called in the order of time, by one goroutine, and says false if it wants no more.
	Event(e *Event, c *Clock) bool
	// Close is called after the last event.
	Close() error
}

// Clock tells the time of an event.
type Clock = clock

// Statistics are what a run has done.
type Statistics struct {
	Sites   []SiteStatistics
	Pauses  int
	Longest time.Duration // that threads stood still at once
	Paused  time.Duration // together
	// Abandoned counts events that a thread has begun and not finished, and Damaged rings that the program has written to.
	Abandoned, Damaged uint64
	// Ended tells how the program has ended, if it was run.
	ExitCode, Signal int
}

// SiteStatistics are the hits of one site.
type SiteStatistics struct {
	*Site
	Hits, Dropped uint64
	Breakpoint    bool
}
