package input

// Files that people give to a tool for ELF objects by mistake are recognised by their first bytes.

import (
	"bytes"
	"unicode/utf8"
)

// FileType is what a file is.
type FileType uint8

const (
	UnknownFile FileType = iota
	ELFFile
	EmptyFile
	ArchiveFile
	ThinArchiveFile
	BitcodeFile // LLVM's intermediate representation
	MachOFile
	PEFile
	COFFFile
	TextFile
)

// HeadSize is how many bytes of a file recognise wants to see.
const HeadSize = 512

var magics = []struct {
	magic string
	typ   FileType
}{
	{"\x7fELF", ELFFile},
	{"!<arch>\n", ArchiveFile},
	{"!<thin>\n", ThinArchiveFile},
	{"BC\xc0\xde", BitcodeFile},
	{"\xde\xc0\x17\x0b", BitcodeFile}, // in its wrapper
	{"\xfe\xed\xfa\xce", MachOFile},
	{"\xfe\xed\xfa\xcf", MachOFile},
	{"\xce\xfa\xed\xfe", MachOFile},
	{"\xcf\xfa\xed\xfe", MachOFile},
	{"\xca\xfe\xba\xbe", MachOFile}, // for several architectures
	{"MZ", PEFile},
	{"\x64\x86", COFFFile},
	{"\x4c\x01", COFFFile},
	{"\x64\xaa", COFFFile},
}

// recognise looks at the first bytes of a file.
func recognise(head []byte) FileType {
	if len(head) == 0 {
		return EmptyFile
	}
	for _, m := range magics {
		if bytes.HasPrefix(head, []byte(m.magic)) {
			return m.typ
		}
	}
	if isText(head) {
		return TextFile
	}
	return UnknownFile
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
