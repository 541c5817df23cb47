package input

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

func TestRecognise(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       FileType
	}{
		{"nothing", "", EmptyFile},
		{"ELF", "\x7fELF\x02\x01\x01", ELFFile},
		{"ELF's magic alone", "\x7fELF", ELFFile},
		{"archive", "!<arch>\n/               0", ArchiveFile},
		{"empty archive", "!<arch>\n", ArchiveFile},
		{"thin archive", "!<thin>\n/", ThinArchiveFile},
		{"bitcode", "BC\xc0\xde5\x14", BitcodeFile},
		{"wrapped bitcode", "\xde\xc0\x17\x0b\x00\x00", BitcodeFile},
		{"Mach-O of 32 bits, big-endian", "\xfe\xed\xfa\xce", MachOFile},
		{"Mach-O of 64 bits, big-endian", "\xfe\xed\xfa\xcf", MachOFile},
		{"Mach-O of 32 bits", "\xce\xfa\xed\xfe", MachOFile},
		{"Mach-O of 64 bits", "\xcf\xfa\xed\xfe", MachOFile},
		{"Mach-O for several machines", "\xca\xfe\xba\xbe\x00\x00\x00\x02", MachOFile},
		{"PE", "MZ\x90\x00", PEFile},
		{"COFF for amd64", "\x64\x86\x05\x00", COFFFile},
		{"COFF for i386", "\x4c\x01\x05\x00", COFFFile},
		{"COFF for arm64", "\x64\xaa\x05\x00", COFFFile},
		{"C", "#include <stdio.h>\n\tint x;\r\n\f", TextFile},
		{"a script", "#!/bin/sh\n", TextFile},
		{"other letters", "Привет, 世界\n", TextFile},
		{"a letter that the end cuts off", strings.Repeat("a", 508) + "世"[:2], TextFile},
		{"a broken letter", "abc\xff\xfe\xfd\xfc\xfb", UnknownFile},
		{"control characters", "abc\x01\x02\x03", UnknownFile},
		{"zeros", "\x00\x00\x00\x00", UnknownFile},
		{"a kernel with a stub for EFI", "MZ\xea\x07" + strings.Repeat("\x00", 0x1fe) + "HdrS", BootFile},
		{"a kernel for arm64", strings.Repeat("\x00", 0x38) + "ARM\x64", BootFile},
		{"ELF with the magic of a kernel", "\x7fELF" + strings.Repeat("\x00", 0x34) + "ARM\x64", ELFFile},
		{"xz", "\xfd7zXZ\x00", CompressedFile},
		{"zstd", "\x28\xb5\x2f\xfd", CompressedFile},
		{"gzip", "\x1f\x8b\x08", CompressedFile},
		{"an archive's magic cut off", "!<arch>", TextFile},
	} {
		expect.Equal(t, c.want, recognise([]byte(c.head)), "%s", c.name)
	}
}
