package inject

import (
	"errors"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/internal/trace/events"
)

// Life has the kernel tell trampolines that the tracer was killed. Each memory of rings has a word with the ID of the tracer's thread, which
// is a robust futex of that thread: when the thread ends, however that comes, the kernel changes the word (set_robust_list(2)). So trampolines
// that nobody looks after read no argument and can meet no fault.
//
// The kernel finds the word of a list's entry at one distance from the entry. So the entries, which the traced processes must not
// change, are in one half of a mapping, and the words, on pages of the processes' memory, in the other.
type Life struct {
	region []byte
	tid    uint32
	used   [lives]bool
}

const lives = 2000 // the kernel follows 2,048 entries

// NewLife begins the list of the calling thread, which must be locked to the goroutine and end with the tracer.
func NewLife() (*Life, error) {
	page := os.Getpagesize()
	region, err := unix.Mmap(-1, 0, (1+2*lives)*page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	l := &Life{region: region, tid: uint32(unix.Gettid())}
	l.link()
	const headSize = 24 // struct robust_list_head: list, distance, what is being locked
	*l.word(8) = uint64(lives * page)
	if _, _, errno := unix.RawSyscall(unix.SYS_SET_ROBUST_LIST, uintptr(unsafe.Pointer(l.word(0))), headSize, 0); errno != 0 {
		return nil, errors.Join(os.NewSyscallError("set_robust_list", errno), unix.Munmap(region))
	}
	return l, nil
}

func (l *Life) word(at int) *uint64 { return (*uint64)(unsafe.Pointer(&l.region[at])) }

// link links the head and all entries in use.
func (l *Life) link() {
	last, page := l.word(0), os.Getpagesize()
	for i, used := range l.used {
		if entry := l.word((1 + i) * page); used {
			*last, last = uint64(uintptr(unsafe.Pointer(entry))), entry
		}
	}
	*last = uint64(uintptr(unsafe.Pointer(l.word(0))))
}

// Add sets the word at an offset of memory, which is the first of a page. In memory that the tracer does not share it stays when the tracer ends.
func (l *Life) Add(memory events.Memory, offset uint64) error {
	m, ok := memory.(*mappedMemory)
	free := -1
	for i, used := range l.used {
		if !used {
			free = i
			break
		}
	}
	if !ok || free < 0 {
		return memory.Store(offset, uint64(l.tid)&arch.AliveMask)
	}
	page := os.Getpagesize()
	at := unsafe.Pointer(&l.region[(1+lives+free)*page])
	if _, err := unix.MmapPtr(int(m.file.Fd()), int64(offset), at, uintptr(page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_FIXED); err != nil {
		return os.NewSyscallError("mmap", err)
	}
	l.used[free] = true
	l.link()
	m.close = func() { l.remove(free) }
	return memory.Store(offset, uint64(l.tid))
}

// remove removes an entry.
func (l *Life) remove(i int) {
	page := os.Getpagesize()
	l.used[i] = false
	l.link()
	at := unsafe.Pointer(&l.region[(1+lives+i)*page])
	unix.MmapPtr(-1, 0, at, uintptr(page), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_FIXED|unix.MAP_NORESERVE)
}
