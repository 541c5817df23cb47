package elfreloc

import "slices"

// list is what an Edit is given of one kind of change to one section: items, and perhaps
// a run of further ones that are made each time they are needed. A dense object has
// hundreds of thousands of changes, and its owner can tell each from a few bytes.
type list[T any] struct {
	items []T
	run   run[T]
}

// run is a number of items, and what makes the one of an index.
type run[T any] struct {
	len int
	at  func(i int) T
}

func (l *list[T]) empty() bool { return len(l.items)+l.run.len == 0 }

// add adds items. If the list has none, the slice becomes the list's.
func (l *list[T]) add(items []T) {
	if l.items == nil {
		l.items = items
	} else {
		l.items = append(l.items, items...)
	}
}

// addRun adds a run. Only the first is kept as it is.
func (l *list[T]) addRun(r run[T]) {
	if l.run.len == 0 {
		l.run = r
	} else {
		l.items = r.appendTo(l.items)
	}
}

// sorted returns all items in order, as one run. A run that is alone and in order is not
// copied.
func (l *list[T]) sorted(compare func(a, b T) int) run[T] {
	if len(l.items) == 0 && l.run.isSorted(compare) {
		return l.run
	}
	all := l.run.appendTo(l.items)
	slices.SortFunc(all, compare)
	return run[T]{len(all), func(i int) T { return all[i] }}
}

func (r run[T]) appendTo(items []T) []T {
	items = slices.Grow(items, r.len)
	for i := range r.len {
		items = append(items, r.at(i))
	}
	return items
}

func (r run[T]) isSorted(compare func(a, b T) int) bool {
	if r.len == 0 {
		return true
	}
	last := r.at(0)
	for i := 1; i < r.len; i++ {
		next := r.at(i)
		if compare(last, next) > 0 {
			return false
		}
		last = next
	}
	return true
}
