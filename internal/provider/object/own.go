package object

import (
	"debug/elf"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/emit/assembly"
	"sdtconvert/internal/emit/dof"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
)

// IsOwn reports whether a file is an object that Write or WriteDOF has made: nothing is lost
// when it is written again.
func IsOwn(path string) bool {
	f, err := input.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	src := f.Source()
	if typ, err := src.Type(); err != nil || typ != filetype.ELF {
		return false
	}
	o, err := elfreloc.Open(src, src.Size, src.Name)
	return err == nil && o.Type == elf.ET_REL && isOwn(o)
}

func isOwn(o *elfreloc.Object) bool {
	hasDOF, hasContent, hasCode := false, false, false
	for i := range o.Sections {
		s := &o.Sections[i]
		loaded := s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 && s.Type != elf.SHT_NOTE
		hasContent = hasContent || loaded
		hasCode = hasCode || loaded && s.Flags&elf.SHF_EXECINSTR != 0
		hasDOF = hasDOF || s.Name == dof.SectionName
	}
	files, _ := assembly.SourceFiles(o) // of a broken table none
	ours := len(files) > 0 && files[len(files)-1] == source
	switch {
	case hasDOF: // and perhaps DTrace's own code, with files of its own
		return ours
	case hasCode || len(files) > 1:
		return false
	}
	return ours || !hasContent && len(files) == 0
}
