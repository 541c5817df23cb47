package linkerset

import (
	"fmt"
	"regexp"
	"sync"

	"sdtconvert/elfreloc"
)

// The name of a section is the version of its records: a linker puts sections of one name
// together, so no header can say it. Version 1 has no number in its names.

// Version is the version of the layouts of records.
const Version = 1

// laterNames matches the names of sections of later versions.
var laterNames = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:set_)?sdt_(?:instances|isenabled)([2-9]|[1-9][0-9]+)(?:_set|_rel)?$`)
})

// CheckVersion returns an *elfreloc.Error if a file holds records of a later version than this
// package reads.
func CheckVersion(o *elfreloc.Object) error {
	for i := range o.Sections {
		if match := laterNames().FindStringSubmatch(o.Sections[i].Name); match != nil {
			return o.SectionError(i, fmt.Errorf("records of version %s, and this program reads version %d; use a later sdtconvert", match[1], Version))
		}
	}
	return nil
}
