package trace

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
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/image"
)

const (
	areaMagic  = "sdtconvert trac2" // the layout's
	areaSize   = 1 << 20
	areaHeader = 256 << 10

	// Offsets in the header.
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

// area is mapped code.
type area struct {
	start  uint64
	cursor uint64 // offset of the next trampoline
	used   uint64 // offset behind the last that any tracer has written
	// written is what the header says of used, which may be more.
	written uint64
}

// newArea maps code near an address.
func (p *tracee) newArea(near uint64) (*area, error) {
	space, err := p.space()
	if err != nil {
		return nil, err
	}
	start := space.near(near, areaSize, p.jumper.Reach())
	if start == 0 {
		return nil, fmt.Errorf("no room for %d KiB near %#x", areaSize>>10, near)
	}
	if err := p.mapCode(start, areaSize); err != nil {
		return nil, err
	}
	a := &area{start: start, cursor: areaHeader, used: areaHeader}
	header := make([]byte, ledgerAt)
	copy(header, areaMagic)
	copy(header[nameAt:], memoryName)
	p.order.PutUint32(header[threadIDAt:], uint32(p.threadID))
	p.order.PutUint64(header[usedAt:], areaHeader)
	p.areas = append(p.areas, a)
	return a, errors.Join(p.write(start, header), p.write(start+stubAt, p.jumper.CallStub(start+stubAt, start+blockAt)))
}

// mapCode maps memory that can be executed at an address.
func (p *tracee) mapCode(start, length uint64) error {
	const flags = unix.MAP_PRIVATE | unix.MAP_ANONYMOUS | unix.MAP_FIXED_NOREPLACE
	at, err := p.call(p.calls.Mmap, start, length, unix.PROT_READ|unix.PROT_EXEC, flags, ^uint64(0), 0)
	switch {
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return fmt.Errorf("its security policy forbids new code (mmap: %w; with SELinux: setsebool deny_execmem off)", err)
	case errors.Is(err, unix.ENOMEM):
		return fmt.Errorf("it has no room for %d KiB (mmap: %w): raise its limit of address space", length>>10, err)
	case err == nil && at != start: // a kernel that does not know MAP_FIXED_NOREPLACE
		return fmt.Errorf("no room at %#x", start)
	case err == nil:
		p.mapped(image.Mapping{Start: start, End: start + length, Executable: true})
	}
	return err
}

// mapped records what the process has mapped for the tracer.
func (p *tracee) mapped(m image.Mapping) {
	if p.cachedSpace != nil {
		p.cachedSpace.add(m)
	}
}

// space returns the address space as it is while the process is stopped.
func (p *tracee) space() (*addressSpace, error) {
	if p.cachedSpace != nil {
		return p.cachedSpace, nil
	}
	maps, err := image.Mappings(p.pid)
	if err != nil {
		return nil, err
	}
	brk := uint64(0)
	_, stat, _ := strings.Cut(readText(image.ProcessDirectory(p.pid)+"/stat"), ") ")
	if fields := strings.Fields(stat); len(fields) > 44 { // from the third on; start_brk is the 47th (proc_pid_stat(5))
		brk, _ = strconv.ParseUint(fields[44], 10, 64)
	}
	p.cachedSpace = newAddressSpace(maps, uint64(os.Getpagesize()), brk)
	return p.cachedSpace, nil
}

// areaNear returns an area with room for a trampoline that reaches an address.
func (p *tracee) areaNear(address uint64) (*area, error) {
	for _, a := range p.areas {
		distance := max(a.start+areaSize, address) - min(a.start, address)
		if distance <= p.jumper.Reach()+areaSize && max(a.used, a.cursor)+maxTrampoline < areaSize {
			return a, nil
		}
	}
	return p.newArea(address)
}

// maxTrampoline bounds the length of a trampoline.
const maxTrampoline = 4 << 10

// put writes code into an area, which depends on its address. If an earlier tracer has left the same code, it is there already:
// code of an earlier tracer does not change.
func (p *tracee) put(a *area, code func(at uint64) []byte) (uint64, error) {
	made := code(a.start + a.cursor)
	if a.cursor < a.used {
		old := make([]byte, len(made))
		if err := p.readCode(a.start+a.cursor, old); err == nil && bytes.Equal(old, made) {
			at := a.start + a.cursor
			a.cursor = roundUp(a.cursor+uint64(len(made)), 16)
			return at, nil
		}
		a.cursor = a.used
		made = code(a.start + a.cursor)
	}
	at := a.start + a.cursor
	a.cursor = roundUp(a.cursor+uint64(len(made)), 16)
	a.used = a.cursor
	err := p.writeCode(at, made)
	if a.used > a.written {
		a.written = roundUp(a.used, 64<<10)
		err = errors.Join(err, p.write(a.start+usedAt, binary.NativeEndian.AppendUint64(nil, a.written)))
	}
	return at, err
}

// record adds an entry to the ledger. It returns its number.
func (p *tracee) record(e entry) (int, error) {
	n := len(p.ledger)
	if p.ledgerHoles > 0 {
		n = slices.IndexFunc(p.ledger, func(e entry) bool { return e.kind == noEntry })
		p.ledgerHoles--
	}
	if n >= (ledgerEnd-ledgerAt)/entrySize || len(p.areas) == 0 {
		return 0, errors.New("the ledger of the area is full")
	}
	if n == len(p.ledger) {
		p.ledger = append(p.ledger, entry{})
	}
	return n, p.setEntry(n, e)
}

func (p *tracee) setEntry(n int, e entry) error {
	if e.kind == noEntry && p.ledger[n].kind != noEntry {
		p.ledgerHoles++
	}
	p.ledger[n] = e
	data := binary.NativeEndian.AppendUint64(nil, e.kind)
	data = binary.NativeEndian.AppendUint64(data, e.address)
	data = binary.NativeEndian.AppendUint64(data, e.length)
	start := p.areas[0].start
	return errors.Join(p.write(start+ledgerAt+uint64(n*entrySize), data),
		p.write(start+countAt, binary.NativeEndian.AppendUint64(nil, uint64(len(p.ledger)))))
}

// adopt finds the areas of an earlier tracer, and what its ledger says. The process may have written it: each entry is
// compared with what is mapped.
func (p *tracee) adopt() error {
	space, err := p.space()
	if err != nil {
		return err
	}
	for _, m := range space.maps {
		if !m.Executable || m.Path != "" {
			continue
		}
		for start := roundUp(m.Start, areaSize); start+areaSize <= m.End; start += areaSize { // neighbours are in one mapping
			if err := p.adoptArea(space, start); err != nil {
				return err
			}
		}
	}
	return nil
}

// adoptArea adopts what may be an area.
func (p *tracee) adoptArea(space *addressSpace, start uint64) error {
	magic := make([]byte, len(areaMagic))
	if p.read(start, magic) != nil || string(magic) != areaMagic {
		return nil
	}
	header := make([]byte, areaHeader)
	if err := p.read(start, header); err != nil {
		return err
	}
	a := &area{start: start, cursor: areaHeader, used: p.order.Uint64(header[usedAt:])}
	a.used = max(areaHeader, min(a.used, areaSize))
	a.written = a.used
	p.leftArmed = p.leftArmed || header[activeAt] != 0
	p.areas = append(p.areas, a)
	count := min(p.order.Uint64(header[countAt:]), (ledgerEnd-ledgerAt)/entrySize)
	if len(p.ledger) > 0 || count == 0 {
		return nil
	}
	// The area with the ledger comes first.
	p.areas[0], p.areas[len(p.areas)-1] = p.areas[len(p.areas)-1], p.areas[0]
	for i := range count {
		at := header[ledgerAt+i*entrySize:]
		e := entry{p.order.Uint64(at), p.order.Uint64(at[8:]), p.order.Uint64(at[16:])}
		if e.kind != semaphoreEntry && !isMapped(space.maps, e) {
			e.kind = noEntry
		}
		p.ledger = append(p.ledger, e)
		switch e.kind {
		case noEntry:
			p.ledgerHoles++
		case tableEntry:
			p.adoptHandler(e.address)
		}
	}
	return nil
}

// setActive says in the ledger whether sites are armed.
func (p *tracee) setActive(active byte) {
	if len(p.areas) > 0 {
		p.write(p.areas[0].start+activeAt, []byte{active})
	}
}

// isMapped reports whether an entry is of a mapping as the tracer makes it. The kernel makes one mapping of neighbours without a file.
func isMapped(maps []image.Mapping, e entry) bool {
	return slices.ContainsFunc(maps, func(m image.Mapping) bool {
		isInside := m.Start <= e.address && e.address < m.End && e.length <= m.End-e.address
		switch e.kind {
		case hopEntry:
			return isInside && m.Executable && m.Path == ""
		case tableEntry:
			return isInside && !m.Executable && m.Path == "" && e.length == tableLength
		}
		return m.Start == e.address && m.End-m.Start == e.length && !m.Executable && (strings.HasPrefix(m.Path, "/memfd:"+memoryName) || strings.HasPrefix(m.Path, "/dev/zero"))
	})
}

// hop puts a jump to a trampoline where a jump of a site has to go.
func (p *tracee) hop(space *addressSpace, at, to uint64) bool {
	code := p.jumper.Jump(at, to)
	if code == nil {
		code = p.jumper.FarJump(to)
	}
	first, last := at&^(space.page-1), (at+uint64(len(code))-1)&^(space.page-1)
	for page := first; page <= last; page += space.page {
		if !p.hops[page] && !space.isFree(page, page+space.page) {
			return false
		}
	}
	old := make([]byte, len(code))
	for page := first; page <= last; page += space.page {
		if p.hops[page] {
			continue
		}
		if n, err := p.record(entry{hopEntry, page, space.page}); err != nil || p.mapCode(page, space.page) != nil {
			if err == nil {
				p.setEntry(n, entry{})
			}
			return false
		}
		p.hops[page] = true
	}
	if p.read(at, old) != nil || !bytes.Equal(old, code) && !bytes.Equal(old, make([]byte, len(code))) {
		return false
	}
	return p.write(at, code) == nil
}

// jump returns the bytes that arm a site by a jump to a trampoline, and where they go. Without any, the site has no
// room.
func (p *tracee) jump(s *Site, js arch.JumpSite, a *area, trampoline uint64, current []byte) []byte {
	from := s.address + js.Offset
	if !slices.Contains(js.Fixed, true) {
		return p.jumper.Jump(from, trampoline)
	}
	space, err := p.space()
	if err != nil {
		return nil
	}
	tries := 0
	for to := range p.jumper.Targets(from, current[js.Offset:], js) {
		if tries++; tries > maxTargets {
			break
		}
		if p.hop(space, to, trampoline) {
			return p.jumper.Jump(from, to)
		}
	}
	return nil
}

// maxTargets bounds the addresses that are tried for one site.
const maxTargets = 4096
