package replace

import (
	"sync/atomic"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
)

// Draft is the beginning of an output: what will probably be the same as in the
// input is copied while the rest is still being decided on. What turns out to be
// different, or somewhere else, is written over.
type Draft struct {
	temp   *temporary
	copied []span
	stop   atomic.Bool
	done   chan struct{}
}

// span is a range of bytes of a file.
type span struct{ start, end int64 }

// draftStep is what is copied before the thread looks whether it is to stop, in
// bytes.
const draftStep = 2 << 20

// Draft starts to copy sections of an object that is to be written to path. It
// returns nil where that is of no use, or fails: File will do, or fail, without.
func (w *Writer) Draft(path string, in *input.File, stays []elfreloc.Section) *Draft {
	if in.Size() <= input.LoadMax || len(stays) == 0 || w.Unnamed != nil {
		return nil
	}
	target, regular, err := resolve(path)
	if err != nil || !regular {
		return nil
	}
	temp, err := w.createTemp(target, 0o600)
	if err != nil {
		return nil
	}
	d := &Draft{temp: temp, done: make(chan struct{})}
	go func() {
		defer close(d.done)
		for _, s := range join(stays) {
			if !d.copy(in, s) {
				return
			}
		}
	}()
	return d
}

// join gives the spans of sections, as one where little stands between them.
func join(sections []elfreloc.Section) []span {
	const little = 4 << 10
	var spans []span
	for i := range sections {
		start := int64(sections[i].Offset)
		end := start + int64(sections[i].Size)
		if n := len(spans); n > 0 && start-spans[n-1].end < little {
			spans[n-1].end = end
		} else {
			spans = append(spans, span{start, end})
		}
	}
	return spans
}

// copy reports whether there may be more to copy.
func (d *Draft) copy(in *input.File, all span) bool {
	d.copied = append(d.copied, span{all.start, all.start})
	held := &d.copied[len(d.copied)-1]
	for held.end < all.end {
		step := min(draftStep, all.end-held.end)
		if d.stop.Load() {
			return false
		}
		n, err := copyRange(d.temp.file, held.end, in, held.end, step)
		held.end += n
		if err != nil || n < step {
			return false
		}
	}
	return true
}

// holds reports whether an extent that goes to offset off is there already.
func (d *Draft) holds(off int64, x elfreloc.Extent) bool {
	if d == nil || !x.IsCopy() || x.Src != off {
		return false
	}
	for _, s := range d.copied {
		if s.start <= off && off+x.Len <= s.end {
			return true
		}
	}
	return false
}

// take ends the copying and returns the file, for an output of n bytes.
func (d *Draft) take(n int64) (*temporary, error) {
	d.stop.Store(true)
	<-d.done
	temp := d.temp
	d.temp = nil
	return temp, temp.Truncate(n)
}

// Discard removes the file unless it was taken.
func (d *Draft) Discard() {
	if d != nil && d.temp != nil {
		temp, _ := d.take(0)
		temp.discard()
	}
}
