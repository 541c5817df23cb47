package trace

import (
	"encoding/binary"
	"io"

	"sdtconvert/arch"
)

// textBytes is how much of a text is copied when a probe fires.
const textBytes = 128

// eventLayout says where in an event the words of a site's arguments are.
type eventLayout struct {
	arguments []arch.TracedArgument
	size      uint32 // bytes of an event: 64, 128, or a multiple of 64
	copies    bool   // the trampoline has the kernel copy
	twice     bool   // a text whose pointer is in memory that may not be there
}

const (
	wordBytes    = 8
	minimumEvent = 64 // bytes
)

// newEventLayout lays out the arguments. sp is the offset of the stack pointer: what is in memory is read without care only
// relative to that, or at an address of the program's own data.
func newEventLayout(arguments []Argument, sp int) eventLayout {
	l := eventLayout{}
	size := uint32(arch.EventArguments + wordBytes*len(arguments))
	for i, a := range arguments {
		t := arch.TracedArgument{Operand: a.Operand, At: uint32(arch.EventArguments + wordBytes*i)}
		isFar := a.Kind == arch.InMemory && (a.Base >= 0 && a.Base != sp || a.Index >= 0)
		switch {
		case a.Format == Unreadable:
			t.Operand = arch.Operand{Kind: arch.Constant, Size: wordBytes}
		case a.Format == Text && isFar:
			l.twice = true
		case a.Format == Text:
			t.Copy = textBytes
		case isFar:
			t.Copy = uint32(a.Size)
		}
		if t.Copy > 0 {
			l.copies, t.CopyAt = true, size
			size += wordBytes + (t.Copy+wordBytes-1)&^(wordBytes-1)
		}
		l.arguments = append(l.arguments, t)
	}
	if l.size = minimumEvent; size > l.size {
		l.size = (size + 63) &^ 63
	}
	return l
}

// Event is a hit of a site. It is valid until the next one.
type Event struct {
	*Site
	Time    uint64 // of the processor's clock; then in nanoseconds, as CLOCK_MONOTONIC has them
	Thread  int32
	Process int      // that has made the rings: the parent, if it has forked
	Values  []uint64 // of arguments, extended
	Texts   []Copied // of arguments that are texts
}

// Copied is a text that was copied when a probe fired.
type Copied struct {
	Text       string
	Cut        bool // it goes on
	Unreadable bool // nothing is there
}

// maxRings bounds the rings, and ringBytes the memory of all of one size of events.
const (
	maxRings  = 64
	ringBytes = 16 << 20
)

// newRing lays out the rings of events of a size for so many processors.
func newRing(size uint32, processors int) arch.Ring {
	r := arch.Ring{Count: 1, Size: size, Slots: 1}
	for r.Count < maxRings && r.Count < uint32(processors) {
		r.Count *= 2
	}
	for r.Slots*2*size <= max(ringBytes/r.Count, 256<<10) {
		r.Slots *= 2
	}
	r.Stride = arch.RingHeader + r.Slots*size
	return r
}

// ringLength is the size of all rings, and of the counters of dropped hits behind them.
func ringLength(r arch.Ring) uint64 { return uint64(r.Count)*uint64(r.Stride) + maxSites*wordBytes }

// droppedAt returns the offset of a site's counter of dropped hits.
func droppedAt(r arch.Ring, site uint32) uint64 {
	return uint64(r.Count)*uint64(r.Stride) + uint64(site)*wordBytes
}

// sharedMemory is memory of the process, as the tracer reads and writes it.
type sharedMemory interface {
	io.ReaderAt
	io.WriterAt
	load(offset uint64) (uint64, error)
	store(offset uint64, value uint64) error
}

// ringReader reads the rings of one size of events. The program may write anything to them: no number that is read from
// there is believed.
type ringReader struct {
	arch.Ring
	memory sharedMemory
	order  binary.ByteOrder
	tails  []uint64 // by ring: events that were read
	stuck  []int    // by ring: passes in which the next event was not whole
	buffer []byte

	abandoned, damaged uint64
}

func newRingReader(r arch.Ring, memory sharedMemory, order binary.ByteOrder) *ringReader {
	return &ringReader{Ring: r, memory: memory, order: order, tails: make([]uint64, r.Count), stuck: make([]int, r.Count), buffer: make([]byte, 64<<10)}
}

// patience is how many passes a reader waits for an event that a thread has begun and not finished: the thread may
// be waiting for a processor, or be gone.
const patience = 2000

// read calls f with the bytes of each whole event, and the number of its site. If last is set, no thread writes any
// more. It returns how many events it has read.
func (r *ringReader) read(last bool, f func(site uint32, event []byte)) (count int, err error) {
	for i := range r.Count {
		n, err := r.readRing(i, last, f)
		if count += n; err != nil {
			return count, err
		}
	}
	return count, nil
}

func (r *ringReader) readRing(i uint32, last bool, f func(site uint32, event []byte)) (count int, err error) {
	start, tail := uint64(i)*uint64(r.Stride), r.tails[i]
	head, err := r.memory.load(start)
	if err != nil {
		return 0, err
	}
	if head-tail > uint64(r.Slots) { // what no trampoline writes
		r.damaged++
		r.tails[i] = head
		return 0, r.memory.store(start+wordBytes, head)
	}
	for tail < head {
		slot := tail % uint64(r.Slots)
		chunk := min(head-tail, uint64(r.Slots)-slot, uint64(len(r.buffer))/uint64(r.Size))
		at := start + arch.RingHeader + slot*uint64(r.Size)
		ready, err := r.ready(at, tail, chunk)
		if err != nil {
			return count, err
		}
		if ready == 0 {
			if r.stuck[i]++; !last && r.stuck[i] < patience {
				break
			}
			r.abandoned++
			tail, r.stuck[i] = tail+1, 0
			continue
		}
		r.stuck[i] = 0
		data := r.buffer[:ready*uint64(r.Size)]
		if _, err := r.memory.ReadAt(data, int64(at)); err != nil {
			return count, err
		}
		for ; len(data) > 0; data = data[r.Size:] {
			f(r.order.Uint32(data[r.low():]), data[:r.Size:r.Size])
			count++
		}
		tail += ready
		if err := r.memory.store(start+wordBytes, tail); err != nil {
			return count, err
		}
	}
	r.tails[i] = tail
	return count, r.memory.store(start+wordBytes, tail)
}

// low returns the offset of the lower half of a word.
func (r *ringReader) low() int {
	if r.order == binary.ByteOrder(binary.BigEndian) {
		return 4
	}
	return 0
}

// ready returns how many events from a position on are whole, up to a number.
func (r *ringReader) ready(at, position, most uint64) (n uint64, err error) {
	for n < most {
		word, err := r.memory.load(at + n*uint64(r.Size))
		if err != nil {
			return n, err
		}
		if uint32(word>>32) != uint32(position+n) || uint32(word) == 0 {
			break
		}
		n++
	}
	return n, nil
}

// decode reads the values of an event into e. The site is that of the event.
func (s *Site) decode(e *Event, data []byte, order binary.ByteOrder) {
	e.Site = s
	e.Time, e.Thread = order.Uint64(data[arch.EventTime:]), int32(order.Uint32(data[arch.EventThread:]))
	e.Values, e.Texts = e.Values[:0], noTexts[:len(s.Arguments)]
	if s.layout.copies {
		e.Texts = make([]Copied, len(s.Arguments))
	}
	for i := range s.Arguments {
		a, t := &s.Arguments[i], &s.layout.arguments[i]
		value := order.Uint64(data[t.At:])
		if t.Copy > 0 {
			copied, from := int64(order.Uint64(data[t.CopyAt:])), data[t.CopyAt+wordBytes:][:t.Copy]
			switch {
			case a.Format == Text:
				e.Texts[i] = copiedText(from, copied)
			case copied == int64(t.Copy):
				value = readNumber(from, order)
			default:
				e.Texts[i].Unreadable = true
			}
		}
		if a.Format != Text && a.Size > 0 {
			value = extend(value, a.Size, a.Signed)
		}
		e.Values = append(e.Values, value)
	}
}

// noTexts are those of an event without texts. Nothing writes to them.
var noTexts [maxArguments]Copied

func readNumber(data []byte, order binary.ByteOrder) uint64 {
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

// copiedText returns the text of which n bytes were copied, a negative number if it could not be read.
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
