package events

import (
	"encoding/binary"
	"io"
	"os"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/probe"
)

// maxRings bounds the rings, and ringBytes the memory of all of one size of events.
const (
	maxRings  = 64
	ringBytes = 16 << 20
)

// MaxSites bounds the sites of a run.
const MaxSites = 1 << 14

// NewRing lays out the rings of events of a size for a number of processors.
func NewRing(size uint32, processors int) arch.Ring {
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

// RingLength is the size of all rings, of the counters of dropped hits behind them, and of a page for the word that says
// that the tracer lives.
func RingLength(r arch.Ring) uint64 { return AliveAt(r) + pageSize }

// AliveAt returns the offset of the word that says that the tracer lives. It has a page of its own.
func AliveAt(r arch.Ring) uint64 {
	return (uint64(r.Count)*uint64(r.Stride) + MaxSites*wordBytes + pageSize - 1) &^ (pageSize - 1)
}

var pageSize = uint64(os.Getpagesize())

// DroppedAt returns the offset of a site's counter of dropped hits.
func DroppedAt(r arch.Ring, site uint32) uint64 {
	return uint64(r.Count)*uint64(r.Stride) + uint64(site-1)*wordBytes // sites are numbered from 1
}

// Memory is memory of a process, as the tracer reads and writes it.
type Memory interface {
	io.ReaderAt
	Load(offset uint64) (uint64, error)
	Store(offset uint64, value uint64) error
	// Close gives back what the tracer has of it.
	Close() error
}

// ringReader reads the rings of one size of events. The program may write anything to them: no number that is read from
// there is believed.
type ringReader struct {
	arch.Ring
	memory Memory
	order  binary.ByteOrder
	tails  []uint64 // by ring: events that were read
	stuck  []int    // by ring: passes in which the next event was not whole

	abandoned, damaged uint64
}

func newRingReader(r arch.Ring, memory Memory, order binary.ByteOrder) *ringReader {
	return &ringReader{Ring: r, memory: memory, order: order, tails: make([]uint64, r.Count), stuck: make([]int, r.Count)}
}

// chunkBytes is how much of a ring is read at once.
const chunkBytes = 64 << 10

// patience is how many passes a reader waits for an event that a thread has begun and not finished: the thread may
// be waiting for a processor, or be gone.
const patience = 2000

// read calls f with the bytes of whole events, which f may keep. If last is set, no thread writes any
// more. It returns how many events it has read.
func (r *ringReader) read(last bool, f func(events []byte)) (count int, err error) {
	for i := range r.Count {
		n, err := r.readRing(i, last, f)
		if count += n; err != nil {
			return count, err
		}
	}
	return count, nil
}

func (r *ringReader) readRing(i uint32, last bool, f func(events []byte)) (count int, err error) {
	start, tail := uint64(i)*uint64(r.Stride), r.tails[i]
	head, err := r.memory.Load(start)
	if err != nil {
		return 0, err
	}
	if head-tail > uint64(r.Slots) { // what no trampoline writes
		r.damaged++
		r.tails[i] = head
		return 0, r.memory.Store(start+wordBytes, head)
	}
	for tail < head {
		slot := tail % uint64(r.Slots)
		chunk := min(head-tail, uint64(r.Slots)-slot, chunkBytes/uint64(r.Size))
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
		data := make([]byte, ready*uint64(r.Size))
		if _, err := r.memory.ReadAt(data, int64(at)); err != nil {
			return count, err
		}
		f(data)
		count += int(ready)
		tail += ready
		if err := r.memory.Store(start+wordBytes, tail); err != nil {
			return count, err
		}
	}
	r.tails[i] = tail
	return count, r.memory.Store(start+wordBytes, tail)
}

// siteNumber returns the number of the site of an event: the lower half of its first word.
func siteNumber(event []byte, order binary.ByteOrder) uint32 { return uint32(order.Uint64(event)) }

// ready returns how many events from a position on are whole, up to a number.
func (r *ringReader) ready(at, position, most uint64) (n uint64, err error) {
	for n < most {
		word, err := r.memory.Load(at + n*uint64(r.Size))
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

// CounterRings returns how many counters a site has, one for each ring.
func CounterRings(processors int) uint32 { return NewRing(probe.MinimumEvent, processors).Count }
