package listing

import (
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/emit/stapsdt"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/sitestate"
	"sdtconvert/internal/stapnotes"
)

// semaphores finds the semaphores of the sites in one image: of probe calls by their notes, of is-enabled
// tests by their code.
type semaphores struct {
	code   *locate.Code
	memory image.Image
	states *sitestate.Reader
}

// lookup returns the semaphore of a site, nil for none.
func (s *semaphores) lookup(e *site) (*Semaphore, error) {
	switch {
	case s == nil:
		return nil, nil
	case e.Kind == arch.Enabled:
		ref, ok, err := s.states.Semaphore(&e.Entry)
		if err != nil || !ok {
			return nil, err
		}
		return s.show(ref)
	case e.note == nil || e.note.Semaphore.Null():
		return nil, nil
	}
	ref := e.note.Semaphore
	ref.Addr = ref.Addr.Add(s.code.Base)
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
