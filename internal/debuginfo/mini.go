package debuginfo

import (
	"bytes"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/unpack"
)

// A stripped image of some distributions has the section .gnu_debugdata: an ELF file, compressed by xz,
// whose symbol table has the functions that .dynsym lacks (gdb's manual, "MiniDebugInfo").
const miniSection = ".gnu_debugdata"

// What a hostile section may cost: so many times its size in memory, and at most so many bytes.
const (
	miniRatio = 32
	miniLimit = 64 << 20
)

// MiniDebugInfo returns the ELF file in an image's .gnu_debugdata, nil if it has none. An error names the section.
func MiniDebugInfo(image *elfreloc.Object) (*elfreloc.Object, error) {
	for i := range image.Sections {
		if image.Sections[i].Name != miniSection {
			continue
		}
		data, err := image.Data(i)
		if err != nil {
			return nil, err
		}
		file, err := unpack.XZ(data, min(int64(len(data))*miniRatio, miniLimit))
		if err != nil {
			return nil, image.SectionError(i, err)
		}
		o, err := elfreloc.Open(bytes.NewReader(file), int64(len(file)), image.Name+" "+miniSection)
		if err != nil {
			return nil, err
		}
		if o.Machine != image.Machine || o.Encoding != image.Encoding || o.Type != image.Type {
			return nil, image.SectionError(i, fmt.Errorf("holds a %v for %v, want a %v for %v", o.Type, o.Machine, image.Type, image.Machine))
		}
		return o, nil
	}
	return nil, nil
}
