package inject

// What the tracer maps in a process. An area of code holds trampolines, and begins with a ledger of all that was mapped or
// raised. It stays when the tracer has gone: a thread may be in a handler of a signal that has interrupted a trampoline.
// The next tracer finds it, and uses it again. If a tracer was killed, it undoes what that has left.

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"sort"
	"strings"

	"golang.org/x/sys/unix"

	"sdtconvert/image"
)

const (
	areaMagic  = "sdtconvert trac3" // the layout's
	areaSize   = 1 << 20
	areaHeader = 256 << 10

	// Offsets in the header.
	returnAt   = 16 // an instruction that returns from a function
	threadIDAt = 20
	usedAt     = 24
	countAt    = 32
	nameAt     = 40 // of the shared memory
	activeAt   = 56 // 1 while sites are armed
	ledgerAt   = 64
	ledgerEnd  = 252 << 10
	stubAt     = ledgerEnd // the code of system calls
	stubSize   = 512
	handlerAt  = stubAt + stubSize // the handler of SIGTRAP
	blockAt    = handlerAt + 512   // the registers that it restores

	entrySize  = 24 // kind, address, length
	memoryName = "sdtconvert"
)

// The kinds of entries of a ledger.
const (
	noEntry uint64 = iota
	sharedEntry
	hopEntry
	semaphoreEntry
	tableEntry // of breakpoints
)

// entry is what a ledger says of one thing.
type entry struct{ kind, address, length uint64 }

// Area is mapped code.
type Area struct {
	start  uint64
	cursor uint64 // offset of the next trampoline
	used   uint64 // offset behind the last that any tracer has written
	// written is what the header says of used, which may be more.
	written uint64
}

// ThreadID returns the address of where the area's trampolines find the IDs of threads (arch.Trampoline).
func (a *Area) ThreadID() uint64 { return a.start + threadIDAt }

// newArea maps code near an address.
func (in *Injector) newArea(near uint64) (*Area, error) {
	space, err := in.space()
	if err != nil {
		return nil, err
	}
	start := space.near(near, areaSize, in.Machine.Reach())
	if start == 0 {
		return nil, fmt.Errorf("no room for %d KiB near %#x", areaSize>>10, near)
	}
	if err := in.mapCode(start, areaSize); err != nil {
		return nil, err
	}
	a := &Area{start: start, cursor: areaHeader, used: areaHeader}
	header := make([]byte, ledgerAt)
	copy(header, areaMagic)
	copy(header[nameAt:], memoryName)
	copy(header[returnAt:], in.State.Return)
	in.Order.PutUint32(header[threadIDAt:], uint32(in.threadID))
	in.Order.PutUint64(header[usedAt:], areaHeader)
	in.areas = append(in.areas, a)
	return a, errors.Join(in.Write(start, header), in.Write(start+stubAt, in.Machine.CallStub(start+stubAt, start+blockAt)))
}

// mapCode maps memory that can be executed at an address.
func (in *Injector) mapCode(start, length uint64) error {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	at, err := in.call(in.calls.Mmap, start, length, unix.PROT_READ|unix.PROT_EXEC, flags, ^uint64(0), 0)
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("its security policy forbids new code (mmap: %w; with SELinux: setsebool deny_execmem off)", err)
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("it has no room for %d KiB (mmap: %w): raise its limit of address space", length>>10, err)
	case err == nil && at != start: // a kernel that does not know MAP_FIXED_NOREPLACE
		return fmt.Errorf("no room at %#x", start)
	case err == nil:
		in.mapped(image.Mapping{Start: start, End: start + length, Executable: true})
	}
	return err
}

// mapped records what the process has mapped for the tracer.
func (in *Injector) mapped(m image.Mapping) {
	if in.cachedSpace != nil {
		i := sort.Search(len(in.cachedSpace.maps), func(i int) bool { return in.cachedSpace.maps[i].End > m.Start })
		in.cachedSpace.maps = slices.Insert(in.cachedSpace.maps, i, m)
	}
}

// space returns the address space as it is while the process is stopped.
func (in *Injector) space() (*addressSpace, error) {
	if in.cachedSpace != nil {
		return in.cachedSpace, nil
	}
	maps, brk, err := in.Mappings()
	if err != nil {
		return nil, err
	}
	in.cachedSpace = newAddressSpace(maps, uint64(os.Getpagesize()), brk, in.State.Top)
	return in.cachedSpace, nil
}

// AreaNear returns an area with room for a trampoline that reaches an address.
func (in *Injector) AreaNear(address uint64) (*Area, error) {
	for _, a := range in.areas {
		distance := max(a.start+areaSize, address) - min(a.start, address)
		if distance <= in.Machine.Reach()+areaSize && max(a.used, a.cursor)+maxTrampoline < areaSize {
			return a, nil
		}
	}
	return in.newArea(address)
}

// maxTrampoline bounds the length of a trampoline.
const maxTrampoline = 4 << 10

// Put writes code into an area, which depends on its address. If an earlier tracer has left the same code, it is there already:
// code of an earlier tracer does not change.
func (in *Injector) Put(a *Area, code func(at uint64) []byte) (uint64, error) {
	made := code(a.start + a.cursor)
	if a.cursor < a.used {
		old := make([]byte, len(made))
		if err := in.ReadCode(a.start+a.cursor, old); err == nil && bytes.Equal(old, made) {
			at := a.start + a.cursor
			a.cursor = roundUp(a.cursor+uint64(len(made)), 16)
			return at, nil
		}
		a.cursor = a.used
		made = code(a.start + a.cursor)
	}
	if a.cursor+uint64(len(made)) > areaSize {
		return 0, errors.New("the area is full")
	}
	at := a.start + a.cursor
	a.cursor = roundUp(a.cursor+uint64(len(made)), 16)
	a.used = a.cursor
	err := in.WriteCode(at, made)
	if a.used > a.written {
		a.written = roundUp(a.used, 64<<10)
		err = errors.Join(err, in.Write(a.start+usedAt, binary.NativeEndian.AppendUint64(nil, a.written)))
	}
	return at, err
}

// record adds an entry to the ledger. It returns its number.
func (in *Injector) record(e entry) (int, error) {
	n := len(in.ledger)
	if in.holes > 0 {
		n = slices.IndexFunc(in.ledger, func(e entry) bool { return e.kind == noEntry })
		in.holes--
	}
	if n >= (ledgerEnd-ledgerAt)/entrySize || len(in.areas) == 0 {
		return 0, errors.New("the ledger of the area is full")
	}
	if n == len(in.ledger) {
		in.ledger = append(in.ledger, entry{})
	}
	return n, in.setEntry(n, e)
}

// RecordSemaphore notes in the ledger that a semaphore is raised. It returns the entry's number, or -1 and why the next tracer will not lower
// the semaphore if this one is killed.
func (in *Injector) RecordSemaphore(address uint64) (int, error) {
	if len(in.areas) == 0 {
		return -1, nil
	}
	n, err := in.record(entry{semaphoreEntry, address, 2})
	if err != nil {
		return -1, err
	}
	return n, nil
}

// Forget removes an entry of a semaphore from the ledger; -1 is none.
func (in *Injector) Forget(n int) error {
	if n < 0 {
		return nil
	}
	return in.setEntry(n, entry{})
}

// TakeSemaphores returns the semaphores that a killed tracer has left raised, and forgets them.
func (in *Injector) TakeSemaphores() (addresses []uint64, err error) {
	for n, e := range in.ledger {
		if e.kind == semaphoreEntry {
			addresses = append(addresses, e.address)
			err = errors.Join(err, in.setEntry(n, entry{}))
		}
	}
	return addresses, err
}

func (in *Injector) setEntry(n int, e entry) error {
	if e.kind == noEntry && in.ledger[n].kind != noEntry {
		in.holes++
	}
	in.ledger[n] = e
	data := binary.NativeEndian.AppendUint64(nil, e.kind)
	data = binary.NativeEndian.AppendUint64(data, e.address)
	data = binary.NativeEndian.AppendUint64(data, e.length)
	start := in.areas[0].start
	return errors.Join(in.Write(start+ledgerAt+uint64(n*entrySize), data),
		in.Write(start+countAt, binary.NativeEndian.AppendUint64(nil, uint64(len(in.ledger)))))
}

// adopt finds the areas of an earlier tracer, and what its ledger says. The process may have written it: each entry is
// compared with what is mapped.
func (in *Injector) adopt() error {
	space, err := in.space()
	if err != nil {
		return err
	}
	looks := 0
	for _, m := range space.maps {
		if !m.Executable || m.Path != "" || len(in.areas) == mostAreas {
			continue
		}
		for start := roundUp(m.Start, areaSize); start+areaSize <= m.End && looks < mostLooks; start += areaSize { // neighbours are in one mapping
			looks++
			if err := in.adoptArea(space, start); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostLooks bounds where areas are looked for: a process may have any number of terabytes that can be executed.
const mostLooks = 1 << 14

// mostAreas bounds the areas of an earlier tracer that are used again.
const mostAreas = 64

// adoptArea adopts what may be an area.
func (in *Injector) adoptArea(space *addressSpace, start uint64) error {
	magic := make([]byte, len(areaMagic))
	if in.Read(start, magic) != nil || string(magic) != areaMagic {
		return nil
	}
	header := make([]byte, areaHeader)
	if err := in.Read(start, header); err != nil {
		return err
	}
	a := &Area{start: start, cursor: areaHeader, used: in.Order.Uint64(header[usedAt:])}
	a.used = max(areaHeader, min(a.used, areaSize))
	a.written = a.used
	in.LeftArmed = in.LeftArmed || header[activeAt] != 0
	in.areas = append(in.areas, a)
	count := min(in.Order.Uint64(header[countAt:]), (ledgerEnd-ledgerAt)/entrySize)
	if len(in.ledger) > 0 || count == 0 {
		return nil
	}
	// The area with the ledger comes first.
	in.areas[0], in.areas[len(in.areas)-1] = in.areas[len(in.areas)-1], in.areas[0]
	for i := range count {
		at := header[ledgerAt+i*entrySize:]
		e := entry{in.Order.Uint64(at), in.Order.Uint64(at[8:]), in.Order.Uint64(at[16:])}
		if e.kind != semaphoreEntry && !isMapped(space.maps, e) {
			e.kind = noEntry
		}
		in.ledger = append(in.ledger, e)
		switch e.kind {
		case noEntry:
			in.holes++
		case hopEntry:
			in.hops.add(e.address)
		case tableEntry:
			in.adoptHandler(e.address)
		}
	}
	return nil
}

// SetActive notes in the ledger whether sites are armed.
func (in *Injector) SetActive(active bool) error {
	if len(in.areas) == 0 {
		return nil
	}
	return in.Write(in.areas[0].start+activeAt, []byte{map[bool]byte{true: 1}[active]})
}

// Holds reports whether an address is in an area, or on a page of hops.
func (in *Injector) Holds(address uint64) bool {
	return in.hops.all[address&^(uint64(os.Getpagesize())-1)] || slices.ContainsFunc(in.areas, func(a *Area) bool { return address >= a.start && address < a.start+areaSize })
}

// ReturnAddress returns the address of an instruction that returns from a function, 0 if there is none.
func (in *Injector) ReturnAddress() uint64 {
	if len(in.areas) == 0 {
		return 0
	}
	return in.areas[0].start + returnAt
}

// isMapped reports whether an entry is of a mapping as the tracer makes it. The kernel makes one mapping of neighbours without a file.
func isMapped(maps []image.Mapping, e entry) bool {
	i := sort.Search(len(maps), func(i int) bool { return maps[i].End > e.address })
	if i == len(maps) || maps[i].Start > e.address || e.length > maps[i].End-e.address {
		return false
	}
	switch m := &maps[i]; e.kind {
	case hopEntry:
		return m.Executable && m.Path == ""
	case tableEntry:
		return !m.Executable && m.Path == "" && e.length == tableLength
	default:
		return m.Start == e.address && m.End-m.Start == e.length && !m.Executable && (strings.HasPrefix(m.Path, "/memfd:"+memoryName) || strings.HasPrefix(m.Path, "/dev/zero"))
	}
}
