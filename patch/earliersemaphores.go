package patch

import (
	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/stapnotes"
)

// checkAllSemaphores refuses an object whose notes name semaphores that it does not define,
// where each probe is to have one. That an earlier conversion has made more of them than are
// wanted now cannot be told: guards define them too.
func (opts Options) checkAllSemaphores(o *elfreloc.Object, m arch.Machine) error {
	if opts.Semaphores != All || m == nil {
		return nil
	}
	im, entries, err := opts.earlierRecords(o, m)
	if err != nil {
		return err
	}
	recorded := make(map[image.Addr]bool, len(entries))
	for i := range entries {
		recorded[entries[i].Site] = true
	}
	notes, _, err := stapnotes.Read(o, im)
	if err != nil {
		return err
	}
	for i := range notes {
		// Notes without a record are those of other macros, which no conversion changes.
		if n := &notes[i]; recorded[n.Site.Addr] && (n.Semaphore.Null() || n.Semaphore.Undefined) {
			return earlierError(o, "without --semaphores=all")
		}
	}
	return nil
}
