// Package archives makes archives for tests, as GNU ar does.
package archives

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/testkit/objects"
)

const (
	regularMagic = "!<arch>\n"
	thinMagic    = "!<thin>\n"
)

// Regular collects files, with an index.
func Regular(files ...objects.File) []byte { return collect(regularMagic, files) }

// Thin lists files, with an index. Their names are paths.
func Thin(files ...objects.File) []byte { return collect(thinMagic, files) }

// Member returns a header, for contents of so many bytes. The name ends as its format
// wants it.
func Member(name string, size int) string {
	return fmt.Sprintf("%-16s%-12d%-6d%-6d%-8s%-10d`\n", name, 0, 0, 0, "644", size)
}

func collect(magic string, files []objects.File) []byte {
	var names, body, symbols bytes.Buffer
	var at []int // where the header of each symbol's member is in body
	for _, f := range files {
		for _, name := range definedBy(f.Data) {
			at = append(at, body.Len())
			symbols.WriteString(name + "\x00")
		}
		field := f.Name + "/"
		if magic == thinMagic || len(field) > 16 {
			field = fmt.Sprintf("/%d", names.Len())
			names.WriteString(f.Name + "/\n")
		}
		body.WriteString(Member(field, len(f.Data)))
		if magic != thinMagic {
			body.Write(f.Data)
			body.WriteString(strings.Repeat("\n", len(f.Data)&1))
		}
	}
	for _, b := range []*bytes.Buffer{&names, &symbols} {
		b.WriteString(strings.Repeat("\x00", b.Len()&1))
	}
	index := binary.BigEndian.AppendUint32(nil, uint32(len(at)))
	first := 8 + 60 + 60 + 4*(1+len(at)) + symbols.Len() + names.Len()
	for _, off := range at {
		index = binary.BigEndian.AppendUint32(index, uint32(first+off))
	}
	index = append(index, symbols.Bytes()...)
	return []byte(magic + Member("/", len(index)) + string(index) + Member("//", names.Len()) + names.String() + body.String())
}

// definedBy lists the symbols of an object, if it is one.
func definedBy(data []byte) []string {
	o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "")
	if err != nil {
		return nil
	}
	names, _ := archive.Symbols(o)
	return names
}
