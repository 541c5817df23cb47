package arm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/trace/events"
	"sdtconvert/internal/trace/inject"
	"sdtconvert/internal/trace/probe"
	"sdtconvert/internal/trace/ptrace"
)

// Armer arms the sites of one process.
type Armer struct {
	inject.Process
	Machine  arch.Machine // nil if it is not known yet
	session  *Session
	traits   *arch.Traits
	order    binary.ByteOrder
	word     int                           // bytes
	injector *inject.Injector              // nil if sites get breakpoints alone
	findAll  func() ([]*probe.Site, error) // all sites of the process, for what a killed tracer has left
	state
}

// state is what a child has as its parent has it.
type state struct {
	modules      map[string]bool // that were looked at
	process      *events.Process // of its events, nil before the first is possible
	loader       loader
	armed        []*armedSite
	traps        map[uint64]*armedSite // breakpoints, by address
	entry        *armedSite            // where the program begins, nil if it has begun
	semaphores   map[uint64]semaphore
	places       []place                  // of trampolines, by address
	rings        map[uint32]*events.Rings // by the size of their events
	tables       []*events.Counters
	counters     []uint64 // addresses of tables of counters
	hits         []uint64 // addresses of tables of counters for the sink
	bins         []uint64 // addresses of tables of counters by argument
	cannotCall   bool     // no thread can make calls: sites get breakpoints from then on
	hasJustBegun bool
	noRings      bool          // as its memory is limited
	faulting     []*probe.Site // whose trampolines have met memory that is not there
}

// clone returns a copy for a child. Rings, counters and the process that events name stay common.
func (s *state) clone() state {
	c := *s
	c.modules, c.traps, c.semaphores, c.rings = maps.Clone(s.modules), maps.Clone(s.traps), maps.Clone(s.semaphores), maps.Clone(s.rings)
	c.armed, c.places, c.faulting = nil, slices.Clone(s.places), slices.Clone(s.faulting)
	for _, old := range s.armed {
		copied := *old
		if c.armed = append(c.armed, &copied); s.traps[old.at] == old {
			c.traps[old.at] = &copied
		}
	}
	c.tables, c.counters, c.hits, c.bins = slices.Clone(s.tables), slices.Clone(s.counters), slices.Clone(s.hits), slices.Clone(s.bins)
	return c
}

// armedSite is code that the tracer has changed. Site is nil where no probe is.
type armedSite struct {
	*probe.Site
	at       uint64
	old, new []byte
	isTaken  bool // by another tracer
}

// module returns the module of the code, "" for none.
func (s *armedSite) module() string {
	if s.Site == nil {
		return ""
	}
	return s.Site.Module
}

// semaphore is a semaphore that the tracer has raised.
type semaphore struct {
	entry  int // its number in the ledger, -1 for none
	module string
}

// place is where a trampoline is, or an instruction that has moved, or a hop to one of them.
type place struct {
	start, end uint64
	trampoline *arch.Trampoline
	site       *probe.Site

	moved *arch.Moved // an instruction that has moved, nil for none
	code  uint64      // its address now
	from  uint64      // its address in the program
}

// New returns an armer of a process that has armed nothing.
func New(s *Session, p inject.Process) *Armer {
	a := &Armer{Process: p, session: s, state: state{
		modules: map[string]bool{}, traps: map[uint64]*armedSite{}, semaphores: map[uint64]semaphore{}, rings: map[uint32]*events.Rings{},
	}}
	a.findAll = a.allSites
	return a
}

// Fork returns the armer of a child, which has in its memory what its parent has. Release ends it.
func (a *Armer) Fork(child inject.Process) *Armer {
	c := *a
	c.Process, c.state = child, a.clone()
	c.findAll = c.allSites
	if a.injector != nil {
		c.injector = a.injector.Fork(child)
	}
	a.session.Collector.Share(slices.Collect(maps.Values(c.rings)), c.tables)
	return &c
}

// Release reads what a process has left in its rings, after its last hit.
func (a *Armer) Release() {
	a.session.Collector.Release(slices.Collect(maps.Values(a.rings)), a.tables)
	a.rings, a.tables, a.counters, a.hits, a.bins = map[uint32]*events.Rings{}, nil, nil, nil, nil
}

// Separate gives a child rings of its own, while its only thread is stopped: in another PID namespace its threads have IDs that threads of its
// parent may have. Counters stay common.
func (a *Armer) Separate() error {
	if a.injector == nil || len(a.rings) == 0 {
		return nil
	}
	a.process = nil
	err := a.injector.Begin(0)
	for size, inherited := range a.rings {
		if err != nil {
			break
		}
		var memory events.Memory
		if memory, err = a.injector.ShareAnew(inherited.Address, events.RingLength(inherited.Ring)); err != nil {
			break
		}
		if err = a.session.Life.Add(memory, events.AliveAt(inherited.Ring)); err == nil {
			a.rings[size] = a.session.Collector.AddRings(inherited.Ring, memory, a.order, a.eventProcess())
			a.session.Collector.Release([]*events.Rings{inherited}, nil)
		}
	}
	return errors.Join(err, a.injector.End())
}

// IsArmed reports whether a site of the process is armed.
func (a *Armer) IsArmed() bool {
	return slices.ContainsFunc(a.armed, func(s *armedSite) bool { return s.Site != nil }) || len(a.semaphores) > 0
}

// HasBreakpoints reports whether a thread may meet a breakpoint.
func (a *Armer) HasBreakpoints() bool {
	return len(a.traps) > 0 || a.entry != nil || a.injector != nil && a.injector.HasHandler()
}

// NeedsMemory reports whether what the process leaves must be read before its memory goes away: rings, or names of types.
func (a *Armer) NeedsMemory() bool {
	return a.injector != nil && a.injector.IsPrivate || slices.ContainsFunc(a.armed, func(s *armedSite) bool {
		return s.Site != nil && s.Layout.HasTypeNames
	})
}

// setMachine learns the machine of the process, from its program.
func (a *Armer) setMachine(process *image.Process) error {
	if a.Machine != nil {
		return nil
	}
	machine := process.Machine()
	traits := machine.Traits()
	if traits.Threads.Size == 0 {
		return fmt.Errorf("process %d: tracing of %s programs is not supported", a.PID(), traits.Name)
	}
	a.setTraits(machine, process.Encoding().Order, traits.Name == runtime.GOARCH)
	return nil
}

// setTraits sets the machine. isNative says whether the process can make calls for the tracer.
func (a *Armer) setTraits(machine arch.Machine, order binary.ByteOrder, isNative bool) {
	a.Machine, a.traits, a.order, a.word = machine, machine.Traits(), order, machine.Traits().WordSize()
	if jumper, ok := machine.(arch.Jumper); ok && isNative {
		a.injector = inject.New(a.Process, jumper, order)
	}
}

// readCode reads code of a stopped process.
func (a *Armer) readCode(address uint64, data []byte) error {
	if a.injector != nil {
		return a.injector.ReadCode(address, data)
	}
	return a.Read(address, data)
}

// writeCode writes code of a stopped process, now or at the end of a batch.
func (a *Armer) writeCode(address uint64, data []byte) error {
	if a.injector != nil {
		return a.injector.WriteCode(address, data)
	}
	return a.Write(address, data)
}

// warn warns of the process.
func (a *Armer) warn(format string, args ...any) {
	a.session.Warn(fmt.Errorf("process %d: %w", a.PID(), fmt.Errorf(format, args...)))
}

// warnBreakpoints warns that sites get breakpoints, and why, unless the user has asked for them.
func (a *Armer) warnBreakpoints(reason error) {
	if !a.session.Traps {
		a.warn("sites get breakpoints: %w", reason)
	}
}

// withoutRings warns once that the process cannot have rings. A breakpoint needs none.
func (a *Armer) withoutRings(reason error) error {
	if isGone(reason) {
		return reason
	}
	if !a.noRings {
		a.noRings = true
		a.warnBreakpoints(reason)
	}
	return nil
}

// eventProcess returns the process that events name: all of one process name the same, wherever they come from.
func (a *Armer) eventProcess() *events.Process {
	if a.process == nil {
		a.process = &events.Process{ID: a.PID(), Name: strings.TrimSuffix(ptrace.ReadText(image.ProcessDirectory(a.PID())+"/comm"), "\n"), Memory: a.Process}
	}
	return a.process
}

// ringSet returns the rings of events of a size.
func (a *Armer) ringSet(size uint32) (*events.Rings, error) {
	if set := a.rings[size]; set != nil {
		return set, nil
	}
	r := events.NewRing(size, runtime.NumCPU())
	address, memory, err := a.injector.Share(events.RingLength(r))
	if err != nil {
		return nil, err
	}
	r.Address = address
	if err := a.session.Life.Add(memory, events.AliveAt(r)); err != nil {
		return nil, errors.Join(err, memory.Close())
	}
	a.rings[size] = a.session.Collector.AddRings(r, memory, a.order, a.eventProcess())
	return a.rings[size], nil
}

// counter returns the address of a site's counters of hits that a filter rejects, one for each ring.
func (a *Armer) counter(site uint32) (uint64, error) {
	return a.counterIn(&a.counters, events.NewCounterLayout(1, runtime.NumCPU()), site)
}

// counterIn returns the address of a site's counters in tables of a layout, of which addresses has those that there are.
func (a *Armer) counterIn(addresses *[]uint64, layout events.CounterLayout, site uint32) (uint64, error) {
	table := int(site / layout.Sites)
	for len(*addresses) <= table {
		address, memory, err := a.injector.Share(layout.Length())
		if err != nil {
			return 0, err
		}
		if len(*addresses) == 0 && layout.Words > 1 {
			if err := a.session.Life.Add(memory, layout.AliveAt()); err != nil {
				return 0, errors.Join(err, memory.Close())
			}
		}
		counts := &events.Counters{CounterLayout: layout, Memory: memory, First: uint32(len(*addresses)) * layout.Sites, ForSink: addresses != &a.counters}
		a.session.Collector.AddCounters(counts)
		*addresses, a.tables = append(*addresses, address), append(a.tables, counts)
	}
	return (*addresses)[table] + layout.At(site), nil
}

// countForSink has a trampoline count what the sink wants. ok is false if the sink needs events.
func (a *Armer) countForSink(t *arch.Trampoline, s *probe.Site) (ok bool, err error) {
	sink, ok := a.session.Counting()
	if !ok {
		return false, nil
	}
	conditions, isWhole := a.session.Filter.Conditions(s)
	if !isWhole {
		return false, nil
	}
	bins, ok := sink.Bins(s, len(conditions) > 0)
	if !ok {
		return false, nil
	}
	if bins == nil {
		layout := events.NewCounterLayout(1, runtime.NumCPU())
		t.Ring.Count = layout.Rings
		t.Counters, err = a.counterIn(&a.hits, layout, s.Number)
		return true, err
	}
	layout := events.NewCounterLayout(bins.Count(), runtime.NumCPU())
	const mostBytes = 1 << 28 // of memory for counters; others are counted by their events
	if uint64(s.Number/layout.Sites)*layout.Length() > mostBytes {
		return false, nil
	}
	if t.Counters, err = a.counterIn(&a.bins, layout, s.Number); err != nil {
		return false, err
	}
	t.Bins, t.Ring, t.Alive = bins, arch.Ring{Count: layout.Rings, Stride: layout.Stride}, a.bins[0]+layout.AliveAt()
	if t.Conditions = conditions; len(conditions) > 0 {
		t.Rejected, err = a.counter(s.Number)
	}
	return true, err
}
