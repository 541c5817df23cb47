package locate

import (
	"debug/elf"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

func TestModuleName(t *testing.T) {
	data := objects.Read(t, "small.amd64-clang19-O2.o")
	for _, test := range []struct {
		path  string
		osabi elf.OSABI
		want  string
	}{
		{"/boot/kernel/kernel", elf.ELFOSABI_FREEBSD, "kernel"},
		{"kernel.full", elf.ELFOSABI_FREEBSD, "kernel"},
		{"/usr/lib/debug/boot/kernel/kernel.debug", elf.ELFOSABI_FREEBSD, "kernel"},
		{"coffee.ko", elf.ELFOSABI_FREEBSD, "coffee"},
		{"coffee.ko.debug", elf.ELFOSABI_FREEBSD, "coffee"},
		{"post.ko", elf.ELFOSABI_NONE, "post"},
		{"app.debug", elf.ELFOSABI_NONE, "app.debug"},
		{"libc.so.6", elf.ELFOSABI_NONE, "libc.so.6"},
		{".ko", elf.ELFOSABI_NONE, ".ko"},
	} {
		data[elf.EI_OSABI] = byte(test.osabi)
		expect.Equal(t, test.want, moduleName(test.path, objects.Open(t, data)), "%s of %v", test.path, test.osabi)
	}
}
