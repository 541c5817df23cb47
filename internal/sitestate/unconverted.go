package sitestate

import (
	"bytes"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/patch"
)

// ConvertAdvice says what to do about an image with tracepoints that were not converted.
const ConvertAdvice = "link with -B/usr/libexec/sdtconvert (where the linker wrappers are installed), or convert the objects"

// Unconverted returns the ids of the probes of which an image has tracepoints that no conversion
// has met, sorted (patch.UnconvertedSection). The linker may have dropped their code.
func Unconverted(o *elfreloc.Object) ([]string, error) {
	var ids []string
	left := uint64(o.Size()) // in a hostile file many sections may have the same bytes
	for i := range o.Sections {
		sec := &o.Sections[i]
		if sec.Name != patch.UnconvertedSection || !sec.InFile() || sec.Size > left {
			continue
		}
		left -= sec.Size
		data, err := o.Data(i)
		if err != nil {
			return nil, err
		}
		for text := range bytes.SplitSeq(data, []byte{0}) {
			if id, ok := strings.CutPrefix(string(text), "_"); ok && id != "" {
				ids = append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}
