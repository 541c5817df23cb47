package arm

import "bytes"

// Check looks whether armed code is still the tracer's, while the process runs. It arms again what another tracer has put back, warns of
// sites that another has taken, and forgets modules whose code is new. It returns true if modules are to be looked for.
func (a *Armer) Check() (changed bool) {
	armed := map[string]int{} // by module: code that is the tracer's
	var put []*armedSite
	for _, s := range a.armed {
		current := make([]byte, len(s.new))
		if a.Read(s.at, current) != nil {
			continue
		}
		switch {
		case bytes.Equal(current, s.new):
			armed[s.module()]++
			s.isTaken = false
		case bytes.Equal(current, s.old):
			put = append(put, s)
		case !s.isTaken && s.Site != nil && a.isBreakpoint(current):
			s.isTaken = true
			a.warn("%s at %s: another tracer, such as a uprobe of bpftrace or perf, has put its breakpoint over it: hits there are missed", s.Text, s.Place)
		}
	}
	for _, s := range put {
		if armed[s.module()] == 0 && s.Site != nil && !s.isTaken { // unloaded, and loaded again
			a.forget(s.module())
			changed = true
			continue
		}
		a.complain(a.Write(s.at, s.new))
		if s.isTaken = false; s.Site != nil {
			a.warn("%s at %s: another tracer has disarmed it: hits there were missed; it is armed again", s.Text, s.Place)
		}
	}
	return changed
}

// isBreakpoint reports whether code begins with a breakpoint of the machine.
func (a *Armer) isBreakpoint(code []byte) bool {
	for _, trap := range a.traits.Breakpoints {
		if bytes.HasPrefix(code, trap) {
			return true
		}
	}
	return false
}
