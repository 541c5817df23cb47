package check

import (
	"debug/elf"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// Loaders protect whole pages, so a semaphore in the page that PT_GNU_RELRO ends in can be written.
func TestUnreachable(t *testing.T) {
	segments := []elfreloc.Segment{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Vaddr: 0x1000, Filesz: 0x1000, Memsz: 0x1000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_W, Vaddr: 0x2000, Filesz: 0x2f00, Memsz: 0x4000},
		{Type: elf.PT_GNU_RELRO, Flags: elf.PF_R, Vaddr: 0x3000, Filesz: 0x1800, Memsz: 0x1800},
	}
	const relro = "in memory that cannot be written once the program has started (PT_GNU_RELRO)"
	for addr, want := range map[uint64]string{
		0xffe: "not in the image", 0x1000: "in memory that cannot be written", 0x2000: "", 0x2ffe: "", 0x3000: relro, 0x3ffe: relro,
		0x4000: "", 0x4efe: "", 0x4eff: "in no place of the file, by which tracers name it to the kernel", 0x6000: "not in the image",
	} {
		expect.Equal(t, want, unreachable(segments, addr), "%#x", addr)
	}
}
