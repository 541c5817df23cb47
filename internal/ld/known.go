package ld

import (
	"debug/elf"

	"sdtconvert/internal/known"
	"sdtconvert/patch"
)

// known is what the inputs of a link say of probes, where notes are to tell it: nil
// otherwise.
func (l *link) known(inputs []*linkInput) patch.Known {
	if !l.Convert.Patch.Noted() {
		return nil
	}
	var files []string
	for _, in := range inputs {
		if in.elf == elf.ET_DYN || in.names && in.late.Compiler == "" && (in.elf == elf.ET_REL || in.isArchive()) {
			files = append(files, in.file)
		}
	}
	return known.Read(files, known.Options{ProbePrefix: l.Convert.Patch.ProbePrefix, Jobs: l.Convert.Jobs, FollowThin: true})
}
