// Package events reads what trampolines and breakpoints record of hits, puts it in order and hands it to a Sink. All of it may be
// forged by the traced program: no number or text that comes from there is believed.
package events

import (
	"encoding/binary"
	"io"
	"math"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/probe"
)

// Event is a hit of a site. It is valid until the next one.
type Event struct {
	*probe.Site
	Time    uint64   // of the processor's clock
	Thread  int32    // 0 if the event does not say it
	Process *Process // that has made the rings: the parent, if it has forked
	Values  []uint64 // of arguments, extended; of a floating-point number, the bits of a float64
	Texts   []Copied // of arguments that are texts
}

// Process is a process with events. Many are over when their events are read.
type Process struct {
	ID     int
	Name   string      // as the kernel has it, "" if that was not known
	Memory io.ReaderAt // nil if it cannot be read

	mutex sync.Mutex        // of types
	types map[uint64]string // names of types, by the address of what describes them
}

// Copied is a text that was copied when a probe fired.
type Copied struct {
	Text       string
	Cut        bool // it goes on
	Unreadable bool // nothing is there
	Lost       bool // nor could the argument itself, which is in memory
}

// Sink takes events.
type Sink interface {
	// Event takes an event. It is called in the order of time, by one goroutine, and returns false if it wants no more.
	Event(e *Event, c *Clock) bool
	// Close is called after the last event.
	Close() error
}

// Flusher is a Sink that keeps events back.
type Flusher interface {
	// Flush writes what is kept back. It is called when no event is waiting.
	Flush() error
}

// Counting is a Sink for which trampolines can count in the place of events.
type Counting interface {
	// Bins says how a trampoline of a site counts, nil for hits alone. isFiltered says that not all hits count. If ok is false, the sink needs events.
	Bins(site *probe.Site, isFiltered bool) (bins *arch.Bins, ok bool)
	// Counted is called with what trampolines of a site have counted since the last call: nil if nothing.
	Counted(site *probe.Site, counts []uint64)
}

// View is a Sink that shows what it has counted, also before the end.
type View interface {
	// Show writes what was counted.
	Show() error
	// Clear begins anew.
	Clear()
}

// Incomplete is a Sink that says in its output which hits it lacks.
type Incomplete interface {
	// Dropped is called for each site of which the rings had no room for n hits since the last call.
	Dropped(site *probe.Site, n uint64)
}

const wordBytes = 8

// decode reads the values of an event of a site into e.
func decode(e *Event, s *probe.Site, data []byte, order binary.ByteOrder) {
	e.Site = s
	e.Time, e.Thread = order.Uint64(data[arch.EventTime:]), int32(order.Uint32(data[arch.EventThread:]))
	e.Values, e.Texts = e.Values[:0], noTexts[:len(s.Arguments)]
	if s.Layout.HasTexts {
		e.Texts = make([]Copied, len(s.Arguments))
	}
	for i := range s.Arguments {
		a, t := &s.Arguments[i], &s.Layout.Arguments[i]
		value := order.Uint64(data[t.At:])
		if t.CopyAt > 0 {
			count := int64(order.Uint64(data[t.CopyAt:]))
			if e.Texts[i] = (Copied{Unreadable: count < 0, Lost: count < 0}); a.Format == probe.Text && count >= 0 {
				e.Texts[i] = copiedText(data[t.CopyAt+wordBytes:][:t.Copy], count)
			}
		}
		if a.Format != probe.Text && a.Size > 0 {
			value = extend(value, a)
		}
		e.Values = append(e.Values, value)
	}
	e.cutTexts()
}

// cutTexts cuts the texts whose length another argument has.
func (e *Event) cutTexts() {
	for i := range e.Arguments {
		n := e.Arguments[i].Length - 1
		if n < 0 || n >= len(e.Values) || e.Texts[i].Unreadable || e.Texts[n].Lost {
			continue
		}
		if text, length := &e.Texts[i], e.Values[n]; uint64(len(text.Text)) >= length {
			text.Text, text.Cut = text.Text[:length], false
		}
	}
}

// noTexts are those of an event without texts. Nothing writes to them.
var noTexts [probe.MaxArguments]Copied

// Registers are the registers of a stopped thread, and the memory of its process.
type Registers struct {
	*arch.ThreadState
	Data   []byte
	Word   int // bytes
	Order  binary.ByteOrder
	Memory io.ReaderAt
	// ReadVectors returns the registers that ThreadState.Vectors describes.
	ReadVectors func() ([]byte, error)
	// ReadThreadPointer returns the thread pointer.
	ReadThreadPointer func() (uint64, error)
}

// ReadValues reads the arguments of a site at which a thread has stopped.
func (e *Event) ReadValues(r *Registers) {
	e.Values, e.Texts = e.Values[:0], e.Texts[:0]
	for _, a := range e.Arguments {
		value, ok := r.operand(&a.Operand)
		text := Copied{Unreadable: !ok, Lost: !ok}
		if a.Format == probe.Text && ok {
			data := make([]byte, probe.TextBytes)
			n, _ := r.Memory.ReadAt(data, int64(value)) // up to the end of what is there
			text = copiedText(data, int64(n))
		}
		if a.Size > 0 {
			value = extend(value, &a)
		}
		e.Values, e.Texts = append(e.Values, value), append(e.Texts, text)
	}
	e.cutTexts()
}

func (r *Registers) operand(o *arch.Operand) (value uint64, ok bool) {
	get := func(offset int) uint64 { return r.Get(r.Data, offset, r.Word, r.Order) }
	switch o.Kind {
	case arch.Constant:
		return o.Value, o.Size > 0
	case arch.InRegister:
		return get(o.Base), true
	case arch.InVector:
		data, err := r.ReadVectors()
		at := r.Vectors.Offset + o.Base*r.Vectors.Stride
		if err != nil || at+wordBytes > len(data) {
			return 0, false
		}
		return r.Order.Uint64(data[at:]), true
	}
	address := o.Value
	if o.Base >= 0 {
		address += get(o.Base)
	}
	if o.Index >= 0 {
		address += get(o.Index) * o.Scale
	}
	if o.Thread {
		pointer, err := r.ReadThreadPointer()
		if err != nil {
			return 0, false
		}
		address += pointer
	}
	if r.Word == 4 {
		address = uint64(uint32(address))
	}
	memory := make([]byte, o.Size)
	if _, err := r.Memory.ReadAt(memory, int64(address)); err != nil {
		return 0, false
	}
	return ReadNumber(memory, r.Order), true
}

// ReadNumber reads a number of 1, 2, 4 or 8 bytes.
func ReadNumber(data []byte, order binary.ByteOrder) uint64 {
	switch len(data) {
	case 1:
		return uint64(data[0])
	case 2:
		return uint64(order.Uint16(data))
	case 4:
		return uint64(order.Uint32(data))
	}
	return order.Uint64(data)
}

// copiedText returns the text of which n bytes were copied, none if it could not be read.
func copiedText(data []byte, n int64) Copied {
	if n <= 0 || n > int64(len(data)) {
		return Copied{Unreadable: true}
	}
	for i, b := range data[:n] {
		if b == 0 {
			return Copied{Text: string(data[:i])}
		}
	}
	return Copied{Text: string(data[:n]), Cut: true}
}

// extend returns the value of an argument, of which raw holds the lowest bytes: of a floating-point number, the bits of a float64.
func extend(raw uint64, a *probe.Argument) uint64 {
	shift := 64 - 8*uint(a.Size)
	switch {
	case a.Format == probe.Float && a.Size == 4:
		return math.Float64bits(float64(math.Float32frombits(uint32(raw))))
	case a.Signed:
		return uint64(int64(raw<<shift) >> shift)
	}
	return raw << shift >> shift
}
