package input

// Files that people give to a tool for ELF objects by mistake are recognised by their first bytes.

import (
	"bytes"
	"slices"
	"unicode/utf8"

	"sdtconvert/internal/unpack"
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
	BootFile       // a kernel as boot loaders take it
	CompressedFile // by a program that package unpack knows
	TextFile
)

// HeadSize is how many bytes of a file recognise wants to see.
const HeadSize = 1024

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
		if bytes.HasPrefix(head, []byte(m.magic)) && (m.typ != PEFile || !isBootFile(head)) {
			return m.typ
		}
	}
	switch {
	case isBootFile(head):
		return BootFile
	case unpack.Format(head) != "":
		return CompressedFile
	case isText(head):
		return TextFile
	}
	return UnknownFile
}

// bootMagics are in the headers of kernels of Linux (Documentation/arch/x86/boot.rst, arm64/booting.rst, riscv/boot-image-header.rst,
// drivers/firmware/efi/libstub/zboot-header.S and arch/arm/boot/compressed/head.S).
var bootMagics = []struct {
	offset int
	magic  string
}{{0x202, "HdrS"}, {0x38, "ARM\x64"}, {0x38, "RSC\x05"}, {4, "zimg"}, {0x24, "\x18\x28\x6f\x01"}}

func isBootFile(head []byte) bool {
	return slices.ContainsFunc(bootMagics, func(m struct {
		offset int
		magic  string
	}) bool {
		return len(head) > m.offset && bytes.HasPrefix(head[m.offset:], []byte(m.magic))
	})
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
