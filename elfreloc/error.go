package elfreloc

import (
	"fmt"
	"strings"
)

// Error is a fault of one file, at the place where it was met.
type Error struct {
	File    string
	Section string  // "" when the fault is not of one section
	Offset  *uint64 // from the start of Section; nil when it has no offset
	Err     error
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

// SectionError makes an Error of section sec.
func (o *Object) SectionError(sec int, err error) error {
	return &Error{File: o.Name, Section: o.sectionLabel(sec), Err: err}
}

// OffsetError makes an Error of offset off of section sec.
func (o *Object) OffsetError(sec int, off uint64, err error) error {
	return &Error{File: o.Name, Section: o.sectionLabel(sec), Offset: &off, Err: err}
}

func (o *Object) sectionLabel(sec int) string {
	if sec < len(o.Sections) && o.Sections[sec].Name != "" {
		return o.Sections[sec].Name
	}
	return fmt.Sprintf("section %d", sec)
}
