package check

import (
	"sdtconvert/internal/message"
	"sdtconvert/internal/sitestate"
)

// unconverted finds the probes of which an image has tracepoints that no conversion has met. If
// it has no other sites, one finding is of all.
func (c *fileChecker) unconverted() error {
	if c.relocatable() {
		return nil
	}
	ids, err := sitestate.Unconverted(c.Object.Object)
	if err != nil || len(ids) == 0 {
		return err
	}
	c.link.unconverted[c.index] = true
	if len(c.entries)+len(c.noteSites) == 0 {
		c.addWhole(NotConverted, "", "not converted (%s, %s first): %s", message.Plural(len(ids), "probe"), ids[0], sitestate.ConvertAdvice)
		return nil
	}
	for _, id := range ids {
		c.addWhole(NotConverted, id, "not converted: %s", sitestate.ConvertAdvice)
	}
	return nil
}

// definedAlone finds the images that define probes and have no site at all, unless another
// file has sites of one of them.
func (l *link) definedAlone() {
	type defining struct {
		first  *definition
		probes int
	}
	images, order := map[int]*defining{}, []int{}
	for i := range l.probes {
		d := &l.probes[i]
		file := d.finding.file
		if !d.image || l.sited[file] || l.unconverted[file] {
			continue
		}
		if len(l.uses[d.symbol]) > 0 {
			l.sited[file] = true
			continue
		}
		if images[file] == nil {
			images[file] = &defining{first: d}
			order = append(order, file)
		}
		images[file].probes++
	}
	for _, file := range order {
		if l.sited[file] {
			continue
		}
		l.unconverted[file] = true
		f := Finding{File: l.set.files[file], file: file}
		l.add(f, NotConverted, "not converted: %s; it defines %s, and no file that was given has a site of any", sitestate.ConvertAdvice, message.Plural(images[file].probes, "probe"))
	}
}
