package filetype

import (
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
)

func TestRecognise(t *testing.T) {
	for _, c := range []struct {
		name, head string
		want       Type
	}{
		{"nothing", "", Empty},
		{"ELF", "\x7fELF\x02\x01\x01", ELF},
		{"ELF's magic alone", "\x7fELF", ELF},
		{"archive", "!<arch>\n/               0", Archive},
		{"empty archive", "!<arch>\n", Archive},
		{"thin archive", "!<thin>\n/", ThinArchive},
		{"bitcode", "BC\xc0\xde5\x14", Bitcode},
		{"wrapped bitcode", "\xde\xc0\x17\x0b\x00\x00", Bitcode},
		{"Mach-O of 32 bits, big-endian", "\xfe\xed\xfa\xce", MachO},
		{"Mach-O of 64 bits, big-endian", "\xfe\xed\xfa\xcf", MachO},
		{"Mach-O of 32 bits", "\xce\xfa\xed\xfe", MachO},
		{"Mach-O of 64 bits", "\xcf\xfa\xed\xfe", MachO},
		{"Mach-O for several machines", "\xca\xfe\xba\xbe\x00\x00\x00\x02", MachO},
		{"PE", "MZ\x90\x00", PE},
		{"COFF for amd64", "\x64\x86\x05\x00", COFF},
		{"COFF for i386", "\x4c\x01\x05\x00", COFF},
		{"COFF for arm64", "\x64\xaa\x05\x00", COFF},
		{"C", "#include <stdio.h>\n\tint x;\r\n\f", Text},
		{"a script", "#!/bin/sh\n", Text},
		{"other letters", "Привет, 世界\n", Text},
		{"a letter that the end cuts off", strings.Repeat("a", 508) + "世"[:2], Text},
		{"a broken letter", "abc\xff\xfe\xfd\xfc\xfb", Unknown},
		{"control characters", "abc\x01\x02\x03", Unknown},
		{"zeros", "\x00\x00\x00\x00", Unknown},
		{"an archive's magic cut off", "!<arch>", Text},
	} {
		expect.Equal(t, c.want, Recognise([]byte(c.head)), "%s", c.name)
	}
}
