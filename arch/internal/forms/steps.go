package forms

import "slices"

// Steps says what holds while code is executed, from an offset of the code on. States are in the order of their offsets.
type Steps[State any] struct {
	offsets []int
	states  []State
}

// Mark notes the state that begins at an offset: the last one, changed.
func (s *Steps[State]) Mark(offset int, change func(*State)) {
	state := s.Last()
	change(&state)
	s.offsets, s.states = append(s.offsets, offset), append(s.states, state)
}

// Last returns the state at the end, the zero state if there is none.
func (s *Steps[State]) Last() (state State) {
	if len(s.states) > 0 {
		state = s.states[len(s.states)-1]
	}
	return state
}

// At returns the state at an offset, the zero state before the first one that was noted.
func (s *Steps[State]) At(offset int) (state State) {
	i := slices.IndexFunc(s.offsets, func(begin int) bool { return begin > offset })
	if i < 0 {
		return s.Last()
	}
	if i > 0 {
		state = s.states[i-1]
	}
	return state
}
