package links

import (
	"fmt"
	"regexp"
	"slices"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
)

var kinds = []string{"probe", "isenabled"}

// layout is how records stand in an image.
type layout struct {
	name    string
	show    string // LAYOUT of show.c
	section map[string]string
	words   uint64 // of a record, 0 for one of two distances
	read    func(t *testing.T, im *image, addr uint64) (probe, site word)
}

var (
	pairs = layout{
		name:    "pairs",
		show:    "1",
		section: map[string]string{"probe": "sdt_instances_set", "isenabled": "sdt_isenabled_set"},
		words:   2,
		read:    readPair,
	}
	relative32 = layout{
		name:    "relative",
		show:    "2",
		section: map[string]string{"probe": "sdt_instances_rel", "isenabled": "sdt_isenabled_rel"},
		read:    readRelative,
	}
	freebsd = layout{
		name:    "freebsd",
		show:    "3",
		section: map[string]string{"probe": "set_sdt_instances_set", "isenabled": "set_sdt_isenabled_set"},
		words:   1,
		read:    readPointer,
	}
	layouts = []layout{pairs, relative32, freebsd}
)

// linkedBy reports whether a linker links the records.
func (l layout) linkedBy(ld toolchains.Linker) bool {
	return l.words != 0 || ld.Can(toolchains.Distances)
}

// size returns that of a record in bytes.
func (l layout) size(im *image) uint64 {
	if l.words == 0 {
		return 8
	}
	return l.words * uint64(im.wordSize())
}

// flags returns the converter's flags for a layout; the default is left unsaid.
func (l layout) flags() []string {
	if l.name == "pairs" {
		return nil
	}
	return []string{"--layout", l.name}
}

func readPair(t *testing.T, im *image, addr uint64) (probe, site word) {
	t.Helper()
	return im.word(t, addr), im.word(t, addr+uint64(im.wordSize()))
}

// readRelative also sees to it that nothing is left to the dynamic loader.
func readRelative(t *testing.T, im *image, addr uint64) (probe, site word) {
	t.Helper()
	for a := addr; a < addr+8; a++ {
		if w, ok := im.dynamic[a]; ok {
			t.Errorf("%s: a dynamic relocation %v at %#x, in a relative record", im.path, w, a)
		}
	}
	distance := func(at uint64) word {
		to := at + uint64(int64(int32(im.number(im.bytes(t, at, 4)))))
		if im.wordSize() == 4 {
			to = uint64(uint32(to))
		}
		return word{value: to}
	}
	return distance(addr), distance(addr + 4)
}

func readPointer(t *testing.T, im *image, addr uint64) (probe, site word) {
	t.Helper()
	p := im.word(t, addr)
	expect.Equal(t, "", p.symbol, "%s: the pointer at %#x is to a symbol", im.path, addr)
	return readPair(t, im, p.value)
}

// disabled reports whether bytes are what a site of a kind becomes, or what the helper
// begins with that it goes to. The forms are written down again here, as hexadecimal
// beginnings; a dot is any digit.
func disabled(machine, kind string, code []byte) bool {
	text := fmt.Sprintf("%x", code)
	return slices.ContainsFunc(disabledForms[machine+" "+kind], func(form string) bool {
		return regexp.MustCompile("^" + form).MatchString(text)
	})
}

var disabledForms = map[string][]string{
	"amd64 probe": {
		"0f1f440000",   // nopl 0(%rax,%rax,1)
		"660f1f440000", // nopw 0(%rax,%rax,1)
		"c3cccccccc",   // ret; int3...
		"c30f1f00",     // the ret that an inverted jcc steps over

		// Of the layout for FreeBSD:
		"900f1f4000",   // nop; nopl 0(%rax)
		"900f1f440000", // nop; nopl 0(%rax,%rax,1)
		"90c3cccccc",   // nop; ret; int3...
		"90c36690",     // the nop and the ret that an inverted jcc steps over
	},
	"amd64 isenabled": {
		"31c00f1f00",   // xor %eax, %eax; nopl (%rax)
		"31c00f1f4000", // xor %eax, %eax; nopl 0(%rax)
		"31c0c3cc",     // xor %eax, %eax; ret; int3...
	},
	"arm probe": {
		"00f020.3", // nop
		"1eff2f.1", // bx lr
		"aff30080", // nop.w
		"704700bf", // bx lr; nop
	},
	"arm isenabled": {
		"0000a0.3", // mov r0, #0
		"4ff00000", // mov.w r0, #0
		"00207047", // movs r0, #0; bx lr
	},
	"arm64 probe": {
		"1f2003d5", // nop
		"c0035fd6", // ret
	},
	"arm64 isenabled": {
		"00008052", // mov w0, #0
	},
	"i386 probe": {
		"3e8d742600",   // lea %ds:0(%esi,%eiz,1), %esi
		"8db600000000", // lea 0(%esi), %esi
		"c3cccccccc",   // ret; int3...
		"c38d7600",     // the ret that an inverted jcc steps over

		// Of the layout for FreeBSD:
		"908d742600",   // nop; lea 0(%esi,%eiz,1), %esi
		"903e8d742600", // nop; lea %ds:0(%esi,%eiz,1), %esi
		"90c3cccccc",   // nop; ret; int3...
		"90c36690",     // the nop and the ret that an inverted jcc steps over
	},
	"i386 isenabled": {
		"31c08d7600",   // xor %eax, %eax; lea 0(%esi), %esi
		"31c08d742600", // xor %eax, %eax; lea 0(%esi,%eiz,1), %esi
		"31c0c3cc",     // xor %eax, %eax; ret; int3...
	},
	"loong64 probe": {
		"00004003", // nop
		"2000004c", // ret
	},
	"loong64 isenabled": {
		"04001500", // move $a0, $zero
	},
	"ppc64 probe": {
		"60000000", // nop
		"4e800020", // blr
	},
	"ppc64 isenabled": {
		"38600000", // li r3, 0
	},
	"ppc64le probe": {
		"00000060", // nop
		"2000804e", // blr
	},
	"ppc64le isenabled": {
		"00006038", // li r3, 0
	},
	"riscv64 probe": {
		"1300000013000000", // nop; nop
		"6780000013000000", // ret; nop
	},
	"riscv64 isenabled": {
		"1305000013000000", // li a0, 0; nop
		"1305000067800000", // li a0, 0; ret
	},
	"s390x probe": {
		"c00400000000", // brcl 0, .
		"07fe07000700", // br %r14; nopr; nopr
		"07fe",         // the br that an inverted brc steps over
	},
	"s390x isenabled": {
		"a72900000700", // lghi %r2, 0; nopr
		"a729000007fe", // lghi %r2, 0; br %r14
	},
}
