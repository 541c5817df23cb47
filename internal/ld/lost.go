package ld

import (
	"debug/elf"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/message"
)

// warnOfLostRecords warns if the linker has put fewer records into their section than the
// objects have. A linker script can do so without a word: in an output section of another
// name, which b.o(*) may make of all that b.o has, no reader finds them. Where a linker may
// drop code, it may drop the records too, and nothing is said.
func (r *run) warnOfLostRecords() {
	dropsCode := slices.ContainsFunc(r.line.Args, func(a line.Arg) bool { return a.Name == "gc-sections" || a.Name == "icf" })
	if r.line.Relocatable || len(r.line.Scripts) == 0 || dropsCode || r.Convert.Patch.NoRecords {
		return
	}
	linked, err := r.recordBytes(output(r.line))
	if err != nil {
		return // the linker has written something else
	}
	var wanted [arch.Kinds]uint64
	for _, f := range r.inputs.order {
		if f.fd < 0 || f.in.isArchive() || f.in.optional || !f.isOnLine {
			continue // an archive, whose members need not be linked
		}
		sizes, err := r.recordBytes(descriptorPath(f.fd))
		if err != nil {
			continue
		}
		for k := range wanted {
			wanted[k] += sizes[k]
		}
	}
	for k := range arch.Kinds {
		if linked[k] < wanted[k] {
			message.Warning(r.Stderr, fmt.Errorf("%s: section %s has %d bytes of records, and the objects have %d: the linker script %s puts the others elsewhere, where nothing finds them; keep section %[2]s of all objects in a section of that name",
				output(r.line), r.Convert.Patch.Layout.Section(k), linked[k], wanted[k], r.line.Scripts[0]))
		}
	}
}

// recordBytes returns the size of the records in an ELF file, by kind, without those of
// COMDAT groups, of which a linker takes one copy.
func (l *link) recordBytes(file string) (sizes [arch.Kinds]uint64, err error) {
	err = withImage(file, func(o *input.Object) error {
		for i := range o.Sections {
			sec := &o.Sections[i]
			for k := range arch.Kinds {
				if sec.Name == l.Convert.Patch.Layout.Section(k) && sec.Flags&elf.SHF_GROUP == 0 {
					sizes[k] += sec.Size
				}
			}
		}
		return nil
	})
	return sizes, err
}
