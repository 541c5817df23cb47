package patch

import (
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// CheckEarlier refuses to add to the records of an earlier conversion that was
// made with other flags. It reports whether there are such records.
func (p *Plan) CheckEarlier() (bool, error) {
	o, m := p.Scan.Object, p.Scan.Machine
	earlier, err := p.Options.Layout.Earlier(o, m)
	if err != nil || !earlier || len(p.Sites) == 0 {
		return earlier, err
	}
	if p.Options.NoRecords {
		return true, earlierError(o, "without --no-records")
	}
	kept, err := linkerset.KeptAlive(o, m)
	if err != nil {
		return true, err
	}
	for i := range o.Sections {
		if _, ok := p.Options.Layout.IsRecordSection(&o.Sections[i]); !ok {
			continue
		}
		switch {
		case kept[i] && p.Options.DropRelocations:
			return true, earlierError(o, "without --drop-relocations")
		case !kept[i] && !p.Options.DropRelocations:
			return true, earlierError(o, "with --drop-relocations")
		}
	}
	return true, nil
}

func earlierError(o *elfreloc.Object, flags string) error {
	return &elfreloc.Error{File: o.Name, Err: fmt.Errorf(
		"the object was converted before %s; convert it as it was compiled, or with the same flags", flags)}
}
