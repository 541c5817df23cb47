package check

import (
	"strings"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/notes"
)

// unreadArguments finds the operands of notes that some tracer does not read.
func (c *fileChecker) unreadArguments(siteNotes []notes.Note) {
	type argument struct {
		site    image.Addr
		probe   string
		operand string
	}
	reported := map[argument]bool{}
	for i := range siteNotes {
		n := &siteNotes[i]
		if n.Site.Undefined {
			continue
		}
		for _, operand := range arch.SplitOperands(n.Args) {
			tracer, key := c.unreadBy(operand), argument{n.Site.Addr, n.ID(), operand}
			if tracer == "" || reported[key] {
				continue
			}
			reported[key] = true
			c.add(UnreadArgument, n.Site.Addr, shownID(n.Provider, n.Name), "%s does not read the argument %s of the note", tracer, operand)
		}
	}
}

// unreadBy returns a tracer that does not read an operand with its size, "" if all do.
func (c *fileChecker) unreadBy(operand string) (tracer string) {
	size, place, hasSize := strings.Cut(operand, "@")
	if !hasSize { // a word
		size, place = "8", operand
	}
	switch strings.TrimPrefix(size, "-") {
	case "1", "2", "4", "8":
	default: // of a structure, a number of 16 bytes or, with an f, a floating-point number
		return "gdb"
	}
	if unread := c.Machine.Traits().Arguments.Unread; unread != nil {
		return unread(place)
	}
	return ""
}
