package arm

import (
	"bytes"
	"encoding/binary"
)

// Build attributes of an object (Addenda to, and Errata in, the ABI for the Arm
// Architecture, chapter 3): a version, and of each vendor a length, a name and subsections,
// which are a tag, a length and attributes.
const (
	tagFile          = 1 // a subsection of the whole file
	tagCPURawName    = 4
	tagCPUName       = 5
	tagCPUArch       = 6
	tagCompatibility = 32 // the last whose kind is not told by its lowest bit
)

// first are the values of Tag_CPU_arch, as readelf names them, of those before ARMv6T2,
// which brought movw, nop, and instructions of Thumb of 4 bytes other than bl.
var first = [...]string{
	0: "Pre-v4", 1: "v4", 2: "v4T", 3: "v5T", 4: "v5TE", 5: "v5TEJ", 6: "v6", 7: "v6KZ", 9: "v6K",
	11: "v6-M", 12: "v6S-M", 16: "v8-M.baseline",
}

// beforeT2 returns for which processors an object is that have not what ARMv6T2 brought,
// "" where they have, or it does not say.
func (o order) beforeT2(attributes []byte) string {
	if len(attributes) == 0 || attributes[0] != 'A' {
		return ""
	}
	for sections := attributes[1:]; ; {
		vendor, next, ok := o.sized(sections, 0)
		if !ok {
			return ""
		}
		sections = next
		name, subsections, _ := bytes.Cut(vendor, []byte{0})
		for string(name) == "aeabi" && len(subsections) > 0 {
			tag := subsections[0]
			attributes, next, ok := o.sized(subsections, 1)
			if !ok {
				return ""
			}
			if arch, found := cpuArch(attributes); tag == tagFile && found {
				if arch < uint64(len(first)) {
					return first[arch]
				}
				return ""
			}
			subsections = next
		}
	}
}

// sized cuts off what has its own length at an offset, which counts from its start.
func (o order) sized(b []byte, at int) (content, rest []byte, ok bool) {
	if len(b) < at+4 {
		return nil, nil, false
	}
	n := uint64(o.word(b[at:]))
	if n < uint64(at)+4 || n > uint64(len(b)) {
		return nil, nil, false
	}
	return b[at+4 : n], b[n:], true
}

// cpuArch finds Tag_CPU_arch among attributes: a tag, and a number or a string.
func cpuArch(b []byte) (arch uint64, ok bool) {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, false
		}
		b = b[n:]
		if tag == tagCompatibility || tag != tagCPURawName && tag != tagCPUName && (tag < tagCompatibility || tag&1 == 0) {
			value, n := binary.Uvarint(b)
			if n <= 0 || tag == tagCPUArch {
				return value, n > 0
			}
			b = b[n:]
			if tag != tagCompatibility {
				continue
			}
		}
		_, after, found := bytes.Cut(b, []byte{0})
		if !found {
			return 0, false
		}
		b = after
	}
	return 0, false
}
