package main

import "sync"

// peek reads a file of which little is wanted, in few steps and into memory that is
// used again: its head, the end, where assemblers and compilers put the headers of
// sections and their names, and the names of symbols.
type peek struct {
	file  rawFile
	size  int64
	parts []peeked
	arena []byte
}

type peeked struct {
	off  int64
	data []byte
}

const (
	peekHead  = 512
	peekTail  = 6 << 10
	peekArena = 96 << 10
)

var peeks = sync.Pool{New: func() any { return &peek{arena: make([]byte, 0, peekArena)} }}

// openPeek begins to look at a file, until it is closed. It is nil for what is no
// regular file, or cannot be opened.
func openPeek(path string) *peek {
	f, size, ok := openRaw(path)
	if !ok {
		return nil
	}
	p := peeks.Get().(*peek)
	p.file, p.size = f, size
	p.hold(0, min(peekHead, p.size))
	return p
}

func (p *peek) close() {
	p.file.Close()
	p.parts, p.arena = p.parts[:0], p.arena[:0]
	peeks.Put(p)
}

// head is how the file begins.
func (p *peek) head() []byte {
	if len(p.parts) == 0 {
		return nil
	}
	return p.parts[0].data
}

// hold reads n bytes at offset off into the memory, unless there is no room.
func (p *peek) hold(off, n int64) bool {
	from := len(p.arena)
	if n > int64(cap(p.arena)-from) {
		return false
	}
	data := p.arena[from : from+int(n)]
	if got, _ := p.file.ReadAt(data, off); int64(got) < n {
		return false
	}
	p.arena = p.arena[:from+int(n)]
	p.parts = append(p.parts, peeked{off, data})
	return true
}

// Slice returns bytes of the file that are in memory now.
func (p *peek) Slice(off, n int64) []byte {
	if b := p.held(off, n); b != nil {
		return b
	}
	if tail := max(0, p.size-peekTail); off >= tail && p.hold(tail, p.size-tail) || p.hold(off, n) {
		return p.held(off, n)
	}
	return nil
}

func (p *peek) held(off, n int64) []byte {
	for _, part := range p.parts {
		if at := off - part.off; at >= 0 && at+n <= int64(len(part.data)) {
			return part.data[at : at+n : at+n]
		}
	}
	return nil
}

func (p *peek) ReadAt(b []byte, off int64) (int, error) {
	if held := p.held(off, int64(len(b))); held != nil {
		return copy(b, held), nil
	}
	return p.file.ReadAt(b, off)
}
