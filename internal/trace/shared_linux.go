package trace

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
)

// share maps memory that the process and the tracer share, and all children of the process.
func (p *tracee) share(length uint64) (address uint64, memory sharedMemory, err error) {
	length = roundUp(length, uint64(os.Getpagesize()))
	fixed, flags := uint64(0), uint64(unix.MAP_SHARED)
	number := slices.IndexFunc(p.ledger, func(e entry) bool {
		return e.kind == sharedEntry && e.length == length && !p.sharedInUse[e.address]
	})
	if number >= 0 {
		fixed, flags = p.ledger[number].address, flags|unix.MAP_FIXED
	}
	const protection = unix.PROT_READ | unix.PROT_WRITE
	fd, err := p.call(p.calls.MemfdCreate, p.areas[0].start+nameAt, unix.MFD_CLOEXEC)
	if err == nil {
		if memory, err = mapFile(fmt.Sprintf("%s/fd/%d", image.ProcessDirectory(p.pid), fd), length); err == nil {
			address, err = p.call(p.calls.Mmap, fixed, length, protection, flags, fd, 0)
		}
		_, closeErr := p.call(p.calls.Close, fd)
		err = errors.Join(err, closeErr)
	} else {
		p.isPrivate = true
		address, err = p.call(p.calls.Mmap, fixed, length, protection, flags|unix.MAP_ANONYMOUS, ^uint64(0), 0)
		memory = processMemory{p.memory, address, p.order}
	}
	if err != nil {
		return 0, nil, fmt.Errorf("it cannot map %d MiB of memory (mmap: %w): raise its limit of address space", length>>20, err)
	}
	p.sharedInUse[address] = true
	if number < 0 {
		p.mapped(image.Mapping{Start: address, End: address + length})
	}
	if number < 0 {
		_, err = p.record(entry{sharedEntry, address, length})
	}
	return address, memory, err
}

// mappedMemory is shared memory that the tracer has mapped, too.
type mappedMemory struct {
	data []byte
	file *os.File
}

func mapFile(path string, length uint64) (*mappedMemory, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	if err := file.Truncate(int64(length)); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(length), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return &mappedMemory{data, file}, nil
}

// ReadAt implements io.ReaderAt.
func (m *mappedMemory) ReadAt(b []byte, offset int64) (int, error) {
	return copy(b, m.data[offset:]), nil
}

// WriteAt implements io.WriterAt.
func (m *mappedMemory) WriteAt(b []byte, offset int64) (int, error) {
	return copy(m.data[offset:], b), nil
}

func (m *mappedMemory) word(offset uint64) *uint64 { return (*uint64)(unsafe.Pointer(&m.data[offset])) }

func (m *mappedMemory) load(offset uint64) (uint64, error) {
	return atomic.LoadUint64(m.word(offset)), nil
}

func (m *mappedMemory) store(offset, value uint64) error {
	atomic.StoreUint64(m.word(offset), value)
	return nil
}

// close gives the memory back to the system. What the process has of it is empty then.
func (m *mappedMemory) close() {
	unix.Fallocate(int(m.file.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, int64(len(m.data)))
	unix.Munmap(m.data)
	m.file.Close()
}

// processMemory is memory that only the process has mapped.
type processMemory struct {
	*os.File
	start uint64
	order binary.ByteOrder
}

// ReadAt implements io.ReaderAt.
func (m processMemory) ReadAt(b []byte, offset int64) (int, error) {
	return m.File.ReadAt(b, int64(m.start)+offset)
}

// WriteAt implements io.WriterAt.
func (m processMemory) WriteAt(b []byte, offset int64) (int, error) {
	return m.File.WriteAt(b, int64(m.start)+offset)
}

func (m processMemory) load(offset uint64) (uint64, error) {
	var data [wordBytes]byte
	_, err := m.ReadAt(data[:], int64(offset))
	return m.order.Uint64(data[:]), err
}

func (m processMemory) store(offset, value uint64) error {
	var data [wordBytes]byte
	m.order.PutUint64(data[:], value)
	_, err := m.WriteAt(data[:], int64(offset))
	return err
}
