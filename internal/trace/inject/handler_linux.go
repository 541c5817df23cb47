package inject

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
	adopted bool              // a killed tracer may have set it
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
func (in *Injector) handlerCode() uint64 { return in.areas[0].start + handlerAt }

// adoptHandler reads the table that an earlier tracer has left.
func (in *Injector) adoptHandler(table uint64) {
	h := &trapHandler{table: table, entries: map[uint64]uint64{}, adopted: true}
	data := make([]byte, arch.TrapTableSize)
	if in.Read(table, data) != nil {
		return
	}
	for n := uint64(0); n < arch.TrapTableSize/arch.TrapEntrySize; n++ {
		address := in.Order.Uint64(data[n*arch.TrapEntrySize:])
		if address == 0 {
			break
		}
		h.entries[address] = n
	}
	in.handler = h
}

// setHandler has the program handle SIGTRAP, if it does not do so itself.
func (in *Injector) setHandler() error {
	if in.handler == nil {
		const protection, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
		table, err := in.call(in.calls.Mmap, 0, tableLength, protection, flags, ^uint64(0), 0)
		if err != nil {
			return err
		}
		in.mapped(image.Mapping{Start: table, End: table + tableLength})
		if _, err := in.record(entry{tableEntry, table, tableLength}); err != nil {
			return err
		}
		in.handler = &trapHandler{table: table, entries: map[uint64]uint64{}}
	}
	if err := in.Write(in.handlerCode(), in.Machine.TrapHandler(in.handler.table)); err != nil {
		return err
	}
	action := make([]byte, actionSize)
	for i, word := range []uint64{in.handlerCode() + arch.TrapHandlerEntry, handlerFlags, in.handlerCode(), 0} {
		in.Order.PutUint64(action[i*wordBytes:], word)
	}
	current, err := in.trapAction()
	if err != nil {
		return err
	}
	if ours := in.Order.Uint64(action); current != 0 && current != ours {
		return errors.New("the program has a handler of its own")
	}
	in.handler.set = true
	return in.setTrapAction(action)
}

// trapAction returns the program's handler of SIGTRAP: 0 is the default.
func (in *Injector) trapAction() (uint64, error) {
	at := in.handler.table + actionAt
	if _, err := in.call(in.calls.Sigaction, uint64(unix.SIGTRAP), 0, at, wordBytes); err != nil {
		return 0, err
	}
	data := make([]byte, wordBytes)
	err := in.Read(at, data)
	return in.Order.Uint64(data), err
}

func (in *Injector) setTrapAction(action []byte) error {
	at := in.handler.table + actionAt
	if err := in.Write(at, action); err != nil {
		return err
	}
	_, err := in.call(in.calls.Sigaction, uint64(unix.SIGTRAP), at, 0, wordBytes)
	return err
}

// Outlive notes in the table where the program goes on behind a breakpoint, 0 if it returns from the function. If the program cannot have the
// handler, it dies at the breakpoint if the tracer is killed.
func (in *Injector) Outlive(breakpoint, next uint64) error {
	if in.noHandler {
		return nil
	}
	if in.handler == nil || !in.handler.set {
		if in.calling == nil || in.setHandler() != nil {
			in.noHandler = true
			return nil
		}
	}
	h := in.handler
	number, known := h.entries[breakpoint]
	if !known {
		number = uint64(len(h.entries))
		if (number+1)*arch.TrapEntrySize >= arch.TrapTableSize {
			return nil
		}
		h.entries[breakpoint] = number
	}
	// The address comes last: it makes the entry one.
	at := h.table + number*arch.TrapEntrySize
	return errors.Join(in.Write(at+wordBytes, binary.NativeEndian.AppendUint64(nil, next)), in.Write(at, binary.NativeEndian.AppendUint64(nil, breakpoint)))
}

// Outlives reports whether a program goes on at a breakpoint without a tracer, as an earlier one has left it.
func (in *Injector) Outlives(breakpoint uint64) bool {
	if in.handler == nil {
		return false
	}
	_, known := in.handler.entries[breakpoint]
	return known
}

// RemoveHandler gives SIGTRAP back its default action. An error says that the handler stays, which does nothing without breakpoints.
func (in *Injector) RemoveHandler() error {
	if in.handler == nil || !in.handler.set && !in.handler.adopted {
		return nil
	}
	if err := in.beginCalls(); err != nil {
		return err
	}
	current, err := in.trapAction()
	if err == nil && current == in.handlerCode()+arch.TrapHandlerEntry {
		err = in.setTrapAction(make([]byte, actionSize))
	}
	in.handler.set, in.handler.adopted, in.noHandler = false, false, false
	return errors.Join(err, in.End())
}

// HasHandler reports whether the program has the handler.
func (in *Injector) HasHandler() bool { return in.handler != nil && in.handler.set }
