package inject

import (
	"errors"
	"fmt"
	"slices"
)

// batch is code of a process whose threads are stopped. It reads each page once, and collects what is written: a system call for each site
// and each trampoline would keep the threads waiting for milliseconds.
type batch struct {
	in    *Injector // whose process it is
	pages map[uint64]*batchPage
	order []uint64 // pages, as they were first written to
}

// batchPage is a page, and the range of it that is to be written.
type batchPage struct {
	data     []byte
	from, to int
}

const batchPageSize = 4096 // bytes; it divides the size of all pages

// BeginBatch makes the batch that ReadCode and WriteCode use until Flush.
func (in *Injector) BeginBatch() { in.batch = &batch{in: in, pages: map[uint64]*batchPage{}} }

// page returns the page of an address, nil if it cannot be read.
func (b *batch) page(address uint64) *batchPage {
	start := address &^ (batchPageSize - 1)
	page, known := b.pages[start]
	if !known {
		data := make([]byte, batchPageSize)
		if b.in.Read(start, data) == nil {
			page = &batchPage{data: data, from: batchPageSize}
		}
		b.pages[start] = page
	}
	return page
}

// each calls f with the pieces of a range of addresses that are in one page each: the offsets in the page and in the range. It returns false if
// a page cannot be read.
func (b *batch) each(address uint64, length int, f func(page *batchPage, start uint64, at, done, n int)) bool {
	for done := 0; done < length; {
		page := b.page(address + uint64(done))
		if page == nil {
			return false
		}
		at := int((address + uint64(done)) & (batchPageSize - 1))
		n := min(length-done, batchPageSize-at)
		f(page, address+uint64(done)-uint64(at), at, done, n)
		done += n
	}
	return true
}

// ReadCode reads code of a stopped process.
func (in *Injector) ReadCode(address uint64, data []byte) error {
	if in.batch != nil && in.batch.each(address, len(data), func(page *batchPage, _ uint64, at, done, n int) {
		copy(data[done:done+n], page.data[at:])
	}) {
		return nil
	}
	return in.Read(address, data)
}

// WriteCode writes code of a stopped process, now or when the batch ends.
func (in *Injector) WriteCode(address uint64, data []byte) error {
	if in.batch != nil && in.batch.each(address, len(data), func(page *batchPage, start uint64, at, done, n int) {
		if page.to == 0 {
			in.batch.order = append(in.batch.order, start)
		}
		copy(page.data[at:], data[done:done+n])
		page.from, page.to = min(page.from, at), max(page.to, at+n)
	}) {
		return nil
	}
	return in.Write(address, data)
}

// Flush writes what the batch has collected: the pages of areas first, which the code of sites jumps to. It returns an error if a page could
// not be written.
func (in *Injector) Flush() (err error) {
	b := in.batch
	in.batch = nil
	if b == nil {
		return nil
	}
	inArea := func(start uint64) bool {
		return slices.ContainsFunc(in.areas, func(a *Area) bool { return start >= a.start && start < a.start+areaSize })
	}
	for _, areas := range []bool{true, false} {
		for _, start := range b.order {
			if inArea(start) != areas {
				continue
			}
			page := b.pages[start]
			if pageErr := in.Write(start+uint64(page.from), page.data[page.from:page.to]); pageErr != nil {
				err = errors.Join(err, fmt.Errorf("the code at %#x cannot be written: %w", start, pageErr))
			}
		}
	}
	return err
}
