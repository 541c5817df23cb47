package patch

import (
	"slices"
	"sort"

	"sdtconvert/elfreloc"
)

// Reference is a relocation against a stub in a section that is loaded. It applies to
// Reloc.Offset of section Relocs.Target.
type Reference struct {
	Relocs *elfreloc.RelocSection
	Index  int                   // of the relocation in Relocs
	Reloc  elfreloc.Relocation   // the relocation itself
	Paired []elfreloc.Relocation // the relocations behind it, at the same offset
	Stub   *Stub
}

// addr returns the address of the relocated field.
func (r *Reference) addr() elfreloc.Addr {
	return elfreloc.Addr{Section: r.Relocs.Target, Offset: r.Reloc.Offset}
}

// callsIn returns the references of code in a section.
func (s *Scan) callsIn(section int) []Reference {
	first := sort.Search(len(s.Calls), func(i int) bool { return s.Calls[i].Relocs.Target >= section })
	end := sort.Search(len(s.Calls), func(i int) bool { return s.Calls[i].Relocs.Target > section })
	return s.Calls[first:end]
}

// hasMarks reports whether a reference of code is a relocation that does nothing, as it marks
// NOPs.
func (s *Scan) hasMarks() bool {
	none := s.Machine.Traits().None
	return slices.ContainsFunc(s.Calls, func(r Reference) bool { return r.Reloc.Type == none })
}
