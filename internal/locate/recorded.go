package locate

import (
	"sdtconvert/image"
	"sdtconvert/internal/notes"
	"sdtconvert/resolve"
)

// recordedFunctions are those that an image's tables of functions name, by the addresses of the file.
type recordedFunctions struct {
	sites  map[image.Addr]*notes.FunctionRow // the first row of each site
	starts map[image.Addr]*notes.FunctionRow // the first row of each function
	faults []error                           // of the tables, each an *elfreloc.Error
}

// Recorded returns the function that the image's tables of functions name for a site. An address that is no site is in the
// same function as a site if that begins at start, an address of the file; 0 for an unknown start.
func (c *Code) Recorded(a image.Addr, start uint64) (resolve.Function, bool) {
	if c.recorded == nil {
		c.readRecorded()
	}
	at := c.inFile(a)
	row, isSite := c.recorded.sites[at]
	if !isSite && start != 0 {
		row = c.recorded.starts[image.Addr{Section: at.Section, Offset: start}]
	}
	if row == nil || row.Function == "" {
		return resolve.Function{}, false
	}
	return c.functions.Recorded(row.Function, at.Section, row.Start.Offset), true
}

// RecordedFaults returns what is wrong with the image's tables of functions. Close does not warn of it then.
func (c *Code) RecordedFaults() []error {
	if c.recorded == nil {
		c.readRecorded()
	}
	faults := c.recorded.faults
	c.recorded.faults = nil
	return faults
}

// readRecorded reads the tables of functions.
func (c *Code) readRecorded() {
	rows, faults, err := notes.ReadFunctions(c.Object, c.Image)
	if err != nil {
		faults = append(faults, err)
	}
	c.recorded = &recordedFunctions{map[image.Addr]*notes.FunctionRow{}, map[image.Addr]*notes.FunctionRow{}, faults}
	for i := range rows {
		row := &rows[i]
		if known := c.recorded.sites[row.Site]; known == nil || known.Function == "" {
			c.recorded.sites[row.Site] = row
		}
		if row.Function != "" && c.recorded.starts[row.Start] == nil {
			c.recorded.starts[row.Start] = row
		}
	}
}
