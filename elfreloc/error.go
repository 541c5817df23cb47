package elfreloc

// What is wrong with a file is told with the place where it was met.

import (
	"fmt"
	"strings"
)

// Error is a fault of one file, at the place where it was met. It is shown as
// "file: section+0xoffset: fault".
type Error struct {
	File    string  // Object.Name
	Section string  // its name, or "section 7"; "" when the fault is not of one section
	Offset  *uint64 // from the start of Section, bytes; nil when it has no offset
	Err     error   // the fault; never nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Section != "" {
		b.WriteString(": " + e.Section)
		if e.Offset != nil {
			fmt.Fprintf(&b, "+%#x", *e.Offset)
		}
	}
	b.WriteString(": " + e.Err.Error())
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// errorf makes an Error of the whole file.
func (o *Object) errorf(format string, args ...any) error {
	return &Error{File: o.Name, Err: fmt.Errorf(format, args...)}
}

// SectionError makes an *Error of section sec, which the object need not have.
func (o *Object) SectionError(sec int, err error) error {
	return &Error{File: o.Name, Section: o.sectionLabel(sec), Err: err}
}

// OffsetError makes an *Error of offset off, in bytes, of section sec.
func (o *Object) OffsetError(sec int, off uint64, err error) error {
	return &Error{File: o.Name, Section: o.sectionLabel(sec), Offset: &off, Err: err}
}

func (o *Object) sectionLabel(sec int) string {
	if sec < len(o.Sections) && o.Sections[sec].Name != "" {
		return o.Sections[sec].Name
	}
	return fmt.Sprintf("section %d", sec)
}
