package inject

// Memory that a process and the tracer share.

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"sdtconvert/image"
	"sdtconvert/internal/trace/events"
)

// Share maps memory that the process and the tracer share, and all children of the process. length is in bytes.
func (in *Injector) Share(length uint64) (address uint64, memory events.Memory, err error) {
	length = roundUp(length, uint64(os.Getpagesize()))
	number := slices.IndexFunc(in.ledger, func(e entry) bool {
		return e.kind == sharedEntry && e.length == length && !in.inUse[e.address]
	})
	if number >= 0 {
		return in.share(in.ledger[number].address, length)
	}
	if address, memory, err = in.share(0, length); err != nil {
		return 0, nil, err
	}
	in.mapped(image.Mapping{Start: address, End: address + length})
	if _, err = in.record(entry{sharedEntry, address, length}); err != nil {
		return 0, nil, errors.Join(err, memory.Close())
	}
	return address, memory, nil
}

// ShareAnew puts other memory in the place of memory that a process shares with its parent.
func (in *Injector) ShareAnew(address, length uint64) (events.Memory, error) {
	_, memory, err := in.share(address, roundUp(length, uint64(os.Getpagesize())))
	return memory, err
}

// share maps memory at an address, or with 0 anywhere.
func (in *Injector) share(fixed, length uint64) (address uint64, memory events.Memory, err error) {
	flags := uint64(unix.MAP_SHARED)
	if fixed != 0 {
		flags |= unix.MAP_FIXED
	}
	const protection = unix.PROT_READ | unix.PROT_WRITE
	if fd, mapped, ok := in.memoryFile(length); ok {
		memory = mapped
		address, err = in.call(in.calls.Mmap, fixed, length, protection, flags, fd, 0)
		_, closeErr := in.call(in.calls.Close, fd)
		err = errors.Join(err, closeErr)
	} else {
		in.IsPrivate = true
		address, err = in.call(in.calls.Mmap, fixed, length, protection, flags|unix.MAP_ANONYMOUS, ^uint64(0), 0)
		memory = processMemory{in.Process, address, in.Order}
	}
	if err != nil {
		memory.Close()
		return 0, nil, in.explainMmap(err, length)
	}
	in.inUse[address] = true
	return address, memory, nil
}

// memoryFile has the process make a memory file, and maps it into the tracer. If ok is false, there is none.
func (in *Injector) memoryFile(length uint64) (fd uint64, memory events.Memory, ok bool) {
	fd, err := in.call(in.calls.MemfdCreate, in.areas[0].start+nameAt, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return 0, nil, false
	}
	if _, err = in.call(in.calls.Ftruncate, fd, length); err == nil {
		if file, takeErr := in.TakeFile(in.calling.tid, fd, length); takeErr == nil {
			if memory, err = mapFile(file, length); err == nil {
				return fd, memory, true
			}
		}
	}
	in.call(in.calls.Close, fd)
	return 0, nil, false
}

// explainMmap explains why the process cannot map memory.
func (in *Injector) explainMmap(err error, length uint64) error {
	if errors.Is(err, unix.EAGAIN) {
		return fmt.Errorf("it cannot lock %d MiB of memory (mmap: %w): it locks all that it maps (mlockall), raise its limit of locked memory", length>>20, err)
	}
	return fmt.Errorf("it cannot map %d MiB of memory (mmap: %w): raise its limit of address space", length>>20, err)
}

// mappedMemory is shared memory that the tracer has mapped, too. Its file cannot change its size.
type mappedMemory struct {
	data  []byte
	file  *os.File
	close func() // nil for nothing
}

func mapFile(file *os.File, length uint64) (*mappedMemory, error) {
	data, err := unix.Mmap(int(file.Fd()), 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &mappedMemory{data: data, file: file}, nil
}

// ReadAt implements io.ReaderAt.
func (m *mappedMemory) ReadAt(b []byte, offset int64) (int, error) {
	return copy(b, m.data[offset:]), nil
}

func (m *mappedMemory) word(offset uint64) *uint64 { return (*uint64)(unsafe.Pointer(&m.data[offset])) }

// Load implements events.Memory.
func (m *mappedMemory) Load(offset uint64) (uint64, error) {
	return atomic.LoadUint64(m.word(offset)), nil
}

// Store implements events.Memory.
func (m *mappedMemory) Store(offset, value uint64) error {
	atomic.StoreUint64(m.word(offset), value)
	return nil
}

// Close gives the memory back to the system. What the process has of it is empty then.
func (m *mappedMemory) Close() error {
	if m.close != nil {
		m.close()
	}
	err := unix.Fallocate(int(m.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(m.data)))
	return errors.Join(err, unix.Munmap(m.data), m.file.Close())
}

// processMemory is memory that only the process has mapped.
type processMemory struct {
	Process
	start uint64
	order binary.ByteOrder
}

// ReadAt implements io.ReaderAt.
func (m processMemory) ReadAt(b []byte, offset int64) (int, error) {
	return m.Process.ReadAt(b, int64(m.start)+offset)
}

// Load implements events.Memory.
func (m processMemory) Load(offset uint64) (uint64, error) {
	var data [wordBytes]byte
	_, err := m.ReadAt(data[:], int64(offset))
	return m.order.Uint64(data[:]), err
}

// Store implements events.Memory.
func (m processMemory) Store(offset, value uint64) error {
	var data [wordBytes]byte
	m.order.PutUint64(data[:], value)
	return m.Process.Write(m.start+offset, data[:])
}

// Close implements events.Memory.
func (m processMemory) Close() error { return nil }

const wordBytes = 8
