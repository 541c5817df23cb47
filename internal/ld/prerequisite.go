package ld

import (
	"bytes"
	"io"
)

// prerequisiteDropper takes a name out of a rule of make, and the empty rule of its own
// that lets make go on when the file is gone. Each linker has its own white space.
type prerequisiteDropper struct {
	to   io.Writer
	name []byte
	held []byte // the end of what came, which the next piece may be a part of
	last byte   // that was written, or a line feed at the beginning
}

func newPrerequisiteDropper(to io.Writer, name string) *prerequisiteDropper {
	return &prerequisiteDropper{to: to, name: []byte(name), last: '\n'}
}

func (d *prerequisiteDropper) Write(b []byte) (int, error) {
	d.held = append(d.held, b...)
	return len(b), d.drop(false)
}

// Close writes what was held back. It does not close what is written to.
func (d *prerequisiteDropper) Close() error { return d.drop(true) }

// behind is what may follow the name that belongs to it.
const behind = ":\n\n"

func (d *prerequisiteDropper) drop(end bool) error {
	for {
		at := bytes.Index(d.held, d.name)
		if at < 0 {
			keep := 0
			if !end {
				keep = min(len(d.held), len(d.name)-1)
			}
			return d.pass(d.blankBefore(len(d.held)-keep, end))
		}
		after := at + len(d.name)
		if !end && len(d.held) < after+len(behind) {
			return d.pass(d.blankBefore(at, false))
		}
		from, to := d.span(at, after)
		if err := d.pass(from); err != nil {
			return err
		}
		d.held = d.held[:copy(d.held, d.held[to-from:])]
	}
}

// span returns what goes of the text around the name: from is where it begins.
func (d *prerequisiteDropper) span(at, after int) (from, to int) {
	rest := d.held[after:]
	begins := at == 0 && d.last == '\n' || at > 0 && d.held[at-1] == '\n'
	switch {
	case begins && bytes.HasPrefix(rest, []byte(behind)):
		return at, after + len(behind)
	case begins && bytes.HasPrefix(rest, []byte(behind[:2])):
		return at, after + 2
	}
	if from = d.blankBefore(at, false); from == at && !begins {
		return after, after // the end of another name
	}
	return from, after
}

// blankBefore returns where white space begins that ends at an offset. At the end of the
// text it is not needed. No linker writes more than maxHeld of it.
func (d *prerequisiteDropper) blankBefore(at int, end bool) int {
	from := at
	for !end && from > 0 && at-from < maxHeld && bytes.IndexByte([]byte(" \t\n\\"), d.held[from-1]) >= 0 {
		from--
	}
	return from
}

// pass writes so many of the bytes that are held.
func (d *prerequisiteDropper) pass(n int) error {
	if n == 0 {
		return nil
	}
	d.last = d.held[n-1]
	_, err := d.to.Write(d.held[:n])
	d.held = d.held[:copy(d.held, d.held[n:])]
	return err
}
