// Package filetype recognises, by their first bytes, the files that people
// give to a tool for ELF objects by mistake.
package filetype

import (
	"bytes"
	"unicode/utf8"
)

// Type is what a file is.
type Type uint8

const (
	Unknown Type = iota
	ELF
	Empty
	Archive
	ThinArchive
	Bitcode // LLVM's intermediate representation
	MachO
	PE
	COFF
	Text
)

// HeadSize is how many bytes of a file Recognise wants to see.
const HeadSize = 512

var magics = []struct {
	magic string
	typ   Type
}{
	{"\x7fELF", ELF},
	{"!<arch>\n", Archive},
	{"!<thin>\n", ThinArchive},
	{"BC\xc0\xde", Bitcode},
	{"\xde\xc0\x17\x0b", Bitcode}, // in its wrapper
	{"\xfe\xed\xfa\xce", MachO},
	{"\xfe\xed\xfa\xcf", MachO},
	{"\xce\xfa\xed\xfe", MachO},
	{"\xcf\xfa\xed\xfe", MachO},
	{"\xca\xfe\xba\xbe", MachO}, // for several architectures
	{"MZ", PE},
	{"\x64\x86", COFF},
	{"\x4c\x01", COFF},
	{"\x64\xaa", COFF},
}

// Recognise looks at the first bytes of a file.
func Recognise(head []byte) Type {
	if len(head) == 0 {
		return Empty
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.typ
		}
	}
	if isText(head) {
		return Text
	}
	return Unknown
}

func isText(head []byte) bool {
	for len(head) > 0 {
		r, n := utf8.DecodeRune(head)
		if r == utf8.RuneError && n == 1 && len(head) >= utf8.UTFMax || r < ' ' && r != '\n' && r != '\t' && r != '\r' && r != '\f' {
			return false
		}
		head = head[n:]
	}
	return true
}
