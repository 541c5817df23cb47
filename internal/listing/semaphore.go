package listing

import (
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/sitestate"
	"sdtconvert/internal/stapnotes"
	"sdtconvert/linkerset"
)

// semaphores finds the semaphores of the sites in one image: of probe calls by their notes, of is-enabled
// tests by their code.
type semaphores struct {
	code   *locate.Code
	memory image.Image
	states *sitestate.Reader
	byNote map[image.Addr]image.Ref // by site, as memory has it
}

func newSemaphores(code *locate.Code, memory image.Image, states *sitestate.Reader, notes []stapnotes.Note) *semaphores {
	s := &semaphores{code: code, memory: memory, states: states, byNote: map[image.Addr]image.Ref{}}
	for _, n := range notes {
		if !n.Semaphore.Null() {
			s.byNote[n.Site.Addr.Add(code.Base)] = image.Ref{Addr: n.Semaphore.Addr.Add(code.Base), Symbol: n.Semaphore.Symbol, Undefined: n.Semaphore.Undefined}
		}
	}
	return s
}

// lookup returns the semaphore of a site, nil for none.
func (s *semaphores) lookup(e *linkerset.Entry) (*Semaphore, error) {
	if s == nil {
		return nil, nil
	}
	ref, ok := s.byNote[e.Site]
	if e.Kind == arch.Enabled {
		var err error
		if ref, ok, err = s.states.Semaphore(e); err != nil {
			return nil, err
		}
	}
	if !ok {
		return nil, nil
	}
	return s.show(ref)
}

// show describes a semaphore. If its bytes cannot be read, it has no value.
func (s *semaphores) show(ref image.Ref) (*Semaphore, error) {
	name, err := stapnotes.SemaphoreName(s.memory, ref)
	if err != nil || ref.Undefined {
		return &Semaphore{Symbol: name}, err
	}
	out := &Semaphore{Address: fmt.Sprintf("%#x", ref.Offset), Symbol: name}
	if ref.Section != 0 {
		out.Section = s.code.Object.Sections[ref.Section].Name
	}
	if b, err := s.memory.Bytes(ref.Addr, stapsdt.SemaphoreSize); err == nil {
		value := s.memory.Encoding().Order.Uint16(b)
		out.Value = &value
	}
	return out, nil
}
