package debuginfo

import (
	"cmp"
	"debug/dwarf"
	"maps"
	"slices"
	"sort"
)

// Calls is with how many arguments functions are called that are defined elsewhere. GCC describes each call
// (DW_TAG_call_site, section 3.4), and without optimisation declares in the block of a call what is called there.
// Other compilers, such as clang, have one declaration in a unit, of one of its calls.
type Calls struct {
	t      *Lines
	byName map[string]*callsOf
}

// callsOf are the calls of one function.
type callsOf struct {
	returns  []callReturn        // sorted
	blocks   []span              // with declarations, sorted; at is the number of parameters
	declared map[int32]unitCalls // by unit
	numbers  map[int]bool        // of parameters
}

// callReturn is the address behind a call, or a tail call.
type callReturn struct {
	address    uint64
	parameters int
}

// unitCalls is what the declarations of a unit say of a function.
type unitCalls struct {
	parameters int
	differ     bool // in the number of parameters
}

// maxCall is how far the address behind a call is from its start, at most.
const maxCall = 8

// Parameters returns with how many arguments a function is called at a place. If exact is false, another call
// of the function in the same unit has so many.
func (c *Calls) Parameters(function string, section int, off uint64) (n int, exact, ok bool) {
	calls := c.byName[function]
	address, known := c.t.address(section, off)
	if calls == nil || !known {
		return 0, false, false
	}
	i := sort.Search(len(calls.returns), func(i int) bool { return calls.returns[i].address > address })
	if i < len(calls.returns) && calls.returns[i].address-address <= maxCall {
		return calls.returns[i].parameters, true, true
	}
	if n, ok := innermost(calls.blocks, address); ok {
		return n, true, true
	}
	spansContaining(c.t.spans, address, func(s *span) bool {
		unit, found := calls.declared[s.at]
		n, exact, ok = unit.parameters, c.t.units[s.at].gnu, found && !unit.differ
		return ok
	})
	return n, exact, ok
}

// Functions returns the names of the functions that are declared, sorted.
func (c *Calls) Functions() []string { return slices.Sorted(maps.Keys(c.byName)) }

// Numbers returns the numbers of parameters that declarations of a function have, sorted.
func (c *Calls) Numbers(function string) []int {
	return slices.Sorted(maps.Keys(c.byName[function].numbers))
}

// innermost returns the number of parameters of the innermost block around an address, unless its declarations
// differ.
func innermost(blocks []span, address uint64) (n int, ok bool) {
	var block *span
	spansContaining(blocks, address, func(s *span) bool {
		switch {
		case block == nil:
			block, n, ok = s, int(s.at), true
		case s.lo != block.lo || s.hi != block.hi:
			return true
		case s.at != block.at:
			ok = false
		}
		return false
	})
	return n, ok
}

// Calls returns the calls of wanted functions.
func (t *Lines) Calls(wanted func(name string) bool) (*Calls, error) {
	r := &callReader{
		t: t, calls: &Calls{t, map[string]*callsOf{}}, declared: map[dwarf.Offset]declared{},
	}
	for i := range t.units {
		r.unit, r.index = &t.units[i], int32(i)
		if err := t.eachDeclaration(r.unit, wanted, r.entry, r.declare); err != nil {
			return r.calls, t.wrap(err)
		}
	}
	// With link-time optimisation another unit declares what is called.
	for _, s := range r.sites {
		if d, ok := r.declared[s.origin]; ok {
			calls := r.of(d.name)
			calls.returns = append(calls.returns, callReturn{s.address, d.parameters})
		}
	}
	for _, c := range r.calls.byName {
		slices.SortStableFunc(c.returns, func(a, b callReturn) int { return cmp.Compare(a.address, b.address) })
		order(c.blocks)
	}
	return r.calls, nil
}

// callReader reads the calls of all units.
type callReader struct {
	t        *Lines
	calls    *Calls
	unit     *unit
	index    int32 // of unit
	outer    []*dwarf.Entry
	declared map[dwarf.Offset]declared
	sites    []callSite
}

// declared is a declaration that was read.
type declared struct {
	name       string
	parameters int
}

// callSite is a call of what is declared at an offset.
type callSite struct {
	address uint64 // behind it
	origin  dwarf.Offset
}

// What GCC has called call sites before DWARF 5.
const tagGNUCallSite dwarf.Tag = 0x4109

// entry notes the blocks around what comes next, and the call that an entry describes, by the address behind it, which GCC has of
// tail calls too.
func (r *callReader) entry(e *dwarf.Entry, depth int) {
	r.outer = append(r.outer[:min(depth, len(r.outer))], e)
	if !r.unit.gnu || e.Tag != dwarf.TagCallSite && e.Tag != tagGNUCallSite {
		return
	}
	for _, attr := range []dwarf.Attr{dwarf.AttrCallOrigin, dwarf.AttrAbstractOrigin} {
		origin, ok := e.Val(attr).(dwarf.Offset)
		if !ok {
			continue
		}
		for _, behind := range []dwarf.Attr{dwarf.AttrCallReturnPC, dwarf.AttrLowpc} {
			if address, ok := e.Val(behind).(uint64); ok {
				r.sites = append(r.sites, callSite{mask(address, r.unit.addrSize), origin})
				return
			}
		}
	}
}

// declare notes a declaration, and where it counts: in its block, and in its unit.
func (r *callReader) declare(d *declaration) error {
	n := len(d.types)
	r.declared[d.Offset] = declared{d.name, n}
	calls := r.of(d.name)
	unit, found := calls.declared[r.index]
	unit.differ = unit.differ || found && unit.parameters != n
	unit.parameters = n
	calls.declared[r.index], calls.numbers[n] = unit, true
	if !r.unit.gnu {
		return nil
	}
	for i := min(d.depth, len(r.outer)) - 1; i > 0; i-- {
		if block := r.outer[i]; block.AttrField(dwarf.AttrLowpc) != nil || block.AttrField(dwarf.AttrRanges) != nil {
			ranges, err := r.t.ranges(r.unit, block)
			for _, each := range ranges {
				calls.blocks = append(calls.blocks, span{lo: each[0], hi: each[1], at: int32(n)})
			}
			return err
		}
	}
	return nil
}

// of returns the calls of a function.
func (r *callReader) of(name string) *callsOf {
	if r.calls.byName[name] == nil {
		r.calls.byName[name] = &callsOf{declared: map[int32]unitCalls{}, numbers: map[int]bool{}}
	}
	return r.calls.byName[name]
}
