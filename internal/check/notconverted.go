package check

import (
	"sdtconvert/internal/message"
	"sdtconvert/internal/sitestate"
)

// mostUnconverted is for how many probes of an image there is a finding each.
const mostUnconverted = 100

// unconverted finds the probes of which an image has tracepoints that no conversion has met. If
// it has no other sites, or there are too many, one finding is of all.
func (c *fileChecker) unconverted() error {
	if c.relocatable() {
		return nil
	}
	ids, err := sitestate.Unconverted(c.Object.Object)
	if err != nil || len(ids) == 0 {
		return err
	}
	c.link.unconverted[c.index] = true
	if len(c.entries)+len(c.noteSites) == 0 || len(ids) > mostUnconverted {
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
	probes, images := map[int]int{}, []int{}
	for i := range l.probes {
		d := &l.probes[i]
		file := d.finding.file
		if !d.image {
			continue
		}
		if probes[file] == 0 {
			images = append(images, file)
		}
		probes[file]++
		l.hasSites[file] = l.hasSites[file] || len(l.uses[d.symbol]) > 0
	}
	for _, file := range images {
		if l.hasSites[file] || l.unconverted[file] {
			continue
		}
		l.unconverted[file] = true
		f := Finding{File: l.set.files[file], file: file}
		l.add(f, NotConverted, "not converted: %s; it defines %s, and no file that was given has a site of any", sitestate.ConvertAdvice, message.Plural(probes[file], "probe"))
	}
}
