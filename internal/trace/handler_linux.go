package trace

// A program whose tracer was killed goes on at breakpoints by itself. It has a handler of SIGTRAP, and a table that says where the
// program goes on behind each breakpoint. While the tracer lives, the kernel asks it before the handler runs. The handler
// and the table stay in the process, as areas do: a thread may be in them. A program that handles or ignores SIGTRAP itself keeps that.

import (
	"encoding/binary"
	"errors"
	"maps"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/image"
)

// Offsets in the memory of a table. A zeroed action follows the entries.
const (
	actionAt    = arch.TrapTableSize + 64 // what system calls read and write
	tableLength = arch.TrapTableSize + 4096

	actionSize = 4 * wordBytes // struct sigaction of the kernel: handler, flags, restorer, mask
)

// handlerFlags are SA_SIGINFO, SA_RESTORER, SA_ONSTACK, SA_RESTART and SA_NODEFER.
const handlerFlags = 0x4 | 0x04000000 | 0x08000000 | 0x10000000 | 0x40000000

// trapHandler is the handler of a process, and its table.
type trapHandler struct {
	table   uint64            // address
	entries map[uint64]uint64 // numbers, by the address of the breakpoint
	set     bool              // it is the action of SIGTRAP
}

// clone returns the handler of a child.
func (h *trapHandler) clone() *trapHandler {
	if h == nil {
		return nil
	}
	copied := *h
	copied.entries = maps.Clone(h.entries)
	return &copied
}

// handlerCode returns the address of the handler's code.
func (p *tracee) handlerCode() uint64 { return p.areas[0].start + handlerAt }

// adoptHandler reads the table that an earlier tracer has left.
func (p *tracee) adoptHandler(table uint64) {
	h := &trapHandler{table: table, entries: map[uint64]uint64{}}
	data := make([]byte, arch.TrapTableSize)
	if p.read(table, data) != nil {
		return
	}
	for n := uint64(0); n < arch.TrapTableSize/arch.TrapEntrySize; n++ {
		address := p.order.Uint64(data[n*arch.TrapEntrySize:])
		if address == 0 {
			break
		}
		h.entries[address] = n
	}
	p.handler = h
}

// setHandler has the program handle SIGTRAP, if it does not do so itself.
func (p *tracee) setHandler() error {
	if p.handler == nil {
		const protection, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
		table, err := p.call(p.calls.Mmap, 0, tableLength, protection, flags, ^uint64(0), 0)
		if err != nil {
			return err
		}
		p.mapped(image.Mapping{Start: table, End: table + tableLength})
		if _, err := p.record(entry{tableEntry, table, tableLength}); err != nil {
			return err
		}
		p.handler = &trapHandler{table: table, entries: map[uint64]uint64{}}
	}
	if err := p.write(p.handlerCode(), p.jumper.TrapHandler(p.handler.table)); err != nil {
		return err
	}
	action := make([]byte, actionSize)
	for i, word := range []uint64{p.handlerCode() + arch.TrapHandlerEntry, handlerFlags, p.handlerCode(), 0} {
		p.order.PutUint64(action[i*wordBytes:], word)
	}
	current, err := p.trapAction()
	if err != nil {
		return err
	}
	if ours := p.order.Uint64(action); current != 0 && current != ours {
		return errors.New("the program has a handler of its own")
	}
	p.handler.set = true
	return p.setTrapAction(action)
}

// trapAction returns the program's handler of SIGTRAP: 0 is the default.
func (p *tracee) trapAction() (uint64, error) {
	at := p.handler.table + actionAt
	if _, err := p.call(p.calls.Sigaction, uint64(unix.SIGTRAP), 0, at, wordBytes); err != nil {
		return 0, err
	}
	data := make([]byte, wordBytes)
	err := p.read(at, data)
	return p.order.Uint64(data), err
}

func (p *tracee) setTrapAction(action []byte) error {
	at := p.handler.table + actionAt
	if err := p.write(at, action); err != nil {
		return err
	}
	_, err := p.call(p.calls.Sigaction, uint64(unix.SIGTRAP), at, 0, wordBytes)
	return err
}

// outlive says in the table where the program goes on behind a breakpoint, 0 if it returns from the function.
func (p *tracee) outlive(breakpoint, next uint64) {
	if p.jumper == nil || p.noHandler {
		return
	}
	if p.handler == nil || !p.handler.set {
		if p.setHandler() != nil {
			p.noHandler = true
			return
		}
	}
	h := p.handler
	number, known := h.entries[breakpoint]
	if !known {
		number = uint64(len(h.entries))
		if (number+1)*arch.TrapEntrySize >= arch.TrapTableSize {
			return
		}
		h.entries[breakpoint] = number
	}
	// The address comes last: it makes the entry one.
	at := h.table + number*arch.TrapEntrySize
	p.write(at+wordBytes, binary.NativeEndian.AppendUint64(nil, next))
	p.write(at, binary.NativeEndian.AppendUint64(nil, breakpoint))
}

// removeHandler gives SIGTRAP back its default action.
func (p *tracee) removeHandler() {
	if p.jumper == nil || p.handler == nil {
		return
	}
	if _, err := p.callsForbidden(); err != nil || p.beginCalls() != nil {
		return
	}
	defer p.endCalls()
	if current, err := p.trapAction(); err == nil && current == p.handlerCode()+arch.TrapHandlerEntry {
		p.setTrapAction(make([]byte, actionSize))
	}
	p.handler.set, p.noHandler = false, false
}
