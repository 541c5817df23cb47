package convert

import (
	"sync/atomic"

	"sdtconvert/internal/input"
)

// habit knows what the last object was like. Those of one build, one after the other,
// are alike: where the last one mentioned a stub, most of the next will be wanted, and
// is loaded at once.
type habit struct{ mentioned atomic.Bool }

func (h *habit) open(path string) (*input.File, error) {
	in, err := input.Open(path)
	if err != nil || !h.mentioned.Load() {
		return in, err
	}
	if err := in.Load(); err != nil {
		in.Close()
		return nil, err
	}
	return in, nil
}

// note says whether an object mentions a stub.
func (h *habit) note(mentioned bool) { h.mentioned.Store(mentioned) }
