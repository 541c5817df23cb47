package linkerset_test

import (
	"debug/elf"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
)

func TestSectionNames(t *testing.T) {
	for _, c := range []struct{ format, name, probe, enabled string }{
		{"pairs", "", "sdt_instances_set", "sdt_isenabled_set"},
		{"relative", "", "sdt_instances_rel", "sdt_isenabled_rel"},
		{"freebsd", "", "set_sdt_instances_set", "set_sdt_isenabled_set"},
		{"pairs", "mine", "mine", "mine_isenabled"},
		{"relative", "mine", "mine", "mine_isenabled"},
		{"freebsd", "mine", "set_mine", "set_mine_isenabled"},
	} {
		l := parse(t, c.format, c.name)
		if got := []string{l.Section(arch.Probe), l.Section(arch.Enabled)}; !cmp.Equal(got, []string{c.probe, c.enabled}) {
			t.Errorf("%s %q: %v", c.format, c.name, got)
		}
		if l.Format.String() != c.format {
			t.Errorf("%s is shown as %s", c.format, l.Format)
		}
	}
}

func TestParseLayoutErrors(t *testing.T) {
	const identifier = " is not a C identifier, so linkers would make no __start_ and __stop_ symbols"
	for _, c := range []struct{ format, name, want string }{
		{"", "", `unknown layout ""; known are pairs, relative, freebsd`},
		{"Pairs", "", `unknown layout "Pairs"; known are pairs, relative, freebsd`},
		{"pairs", ".mine", `section name ".mine"` + identifier},
		{"freebsd", "1st", `section name "1st"` + identifier},
		{"relative", "a b", `section name "a b"` + identifier},
		{"pairs", "a\n", `section name "a\n"` + identifier},
	} {
		expect.Equal(t, c.want, expect.Failure(linkerset.ParseLayout(c.format, c.name)), "%q %q", c.format, c.name)
	}
}

func TestRecordSize(t *testing.T) {
	for _, c := range []struct {
		format string
		word   int
		want   int
	}{{"pairs", 8, 16}, {"pairs", 4, 8}, {"relative", 8, 8}, {"relative", 4, 8}, {"freebsd", 8, 8}, {"freebsd", 4, 4}} {
		expect.Equal(t, c.want, parse(t, c.format, "").Size(c.word), "%s of words of %d bytes", c.format, c.word)
	}
}

// recordSections shows all sections that a conversion has added, but those of
// relocations: header and relocated fields.
func recordSections(t *testing.T, object string, l linkerset.Layout) string {
	before := objects.Read(t, object)
	after, _ := convert(t, before, l, false)
	f := disk.ELF(t, after)
	var b strings.Builder
	for _, s := range f.Sections[len(disk.ELF(t, before).Sections):] {
		if s.Type == elf.SHT_RELA {
			continue
		}
		fmt.Fprintf(&b, "%s %v %v align %d entry %d size %d\n", s.Name, s.Type, s.Flags, s.Addralign, s.Entsize, s.Size)
		for _, line := range spell(t, f, s) {
			b.WriteString("  " + line + "\n")
		}
	}
	return b.String()
}

func TestRecordsOfEachLayout(t *testing.T) {
	for _, c := range []struct{ object, format, name, want string }{
		{"large.arm64-gcc12-large.o", "pairs", "", `
sdt_instances_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_AARCH64_ABS64 sdt_large___call+0
  0x8 R_AARCH64_ABS64 [.text]+16
sdt_isenabled_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_AARCH64_ABS64 sdt_large___call+0
  0x8 R_AARCH64_ABS64 [.text]+36
.text.__sdt_return_0 SHT_PROGBITS SHF_ALLOC+SHF_EXECINSTR align 4 entry 0 size 12
`},
		{"large.arm64-gcc12-large.o", "relative", "", `
sdt_instances_rel SHT_PROGBITS SHF_ALLOC align 4 entry 8 size 8
  0x0 R_AARCH64_PREL32 sdt_large___call+0
  0x4 R_AARCH64_PREL32 [.text]+16
sdt_isenabled_rel SHT_PROGBITS SHF_ALLOC align 4 entry 8 size 8
  0x0 R_AARCH64_PREL32 sdt_large___call+0
  0x4 R_AARCH64_PREL32 [.text]+36
.text.__sdt_return_0 SHT_PROGBITS SHF_ALLOC+SHF_EXECINSTR align 4 entry 0 size 12
`},
		{"gotload.amd64-gcc12-noplt.o", "freebsd", "", `
sdt_instances SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 48
  0x0 R_X86_64_64 sdt_gotload___loop+0
  0x8 R_X86_64_64 [.text]+39
  0x10 R_X86_64_64 sdt_gotload___loop+0
  0x18 R_X86_64_64 [.text]+48
  0x20 R_X86_64_64 sdt_gotload___loop+0
  0x28 R_X86_64_64 [.text]+71
set_sdt_instances_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 8 size 24
  0x0 R_X86_64_64 [sdt_instances]+0
  0x8 R_X86_64_64 [sdt_instances]+16
  0x10 R_X86_64_64 [sdt_instances]+32
sdt_instances SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_X86_64_64 sdt_gotload___loop+0
  0x8 R_X86_64_64 [.text]+54
set_sdt_isenabled_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 8 size 8
  0x0 R_X86_64_64 [sdt_instances]+0
`},
		{"large.arm64-gcc12-large.o", "freebsd", "mine", `
mine_structs SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_AARCH64_ABS64 sdt_large___call+0
  0x8 R_AARCH64_ABS64 [.text]+16
set_mine SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 8 size 8
  0x0 R_AARCH64_ABS64 [mine_structs]+0
mine_structs SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_AARCH64_ABS64 sdt_large___call+0
  0x8 R_AARCH64_ABS64 [.text]+36
set_mine_isenabled SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 8 size 8
  0x0 R_AARCH64_ABS64 [mine_structs]+0
.text.__sdt_return_0 SHT_PROGBITS SHF_ALLOC+SHF_EXECINSTR align 4 entry 0 size 12
`},
		{"existing.amd64-gcc12-static.o", "pairs", "", `
sdt_instances_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 48
  0x0 R_X86_64_64 [.data]+0
  0x8 R_X86_64_64 [.text]+3
  0x10 R_X86_64_64 sdt_existing___new+0
  0x18 R_X86_64_64 [.text]+10
  0x20 R_X86_64_64 sdt_existing___weak+0
  0x28 R_X86_64_64 [.text]+27
sdt_isenabled_set SHT_PROGBITS SHF_WRITE+SHF_ALLOC align 8 entry 16 size 16
  0x0 R_X86_64_64 [.data]+0
  0x8 R_X86_64_64 [.text]+32
`},
	} {
		t.Run(c.object+" "+c.format+" "+c.name, func(t *testing.T) {
			expect.Equal(t, c.want, "\n"+recordSections(t, c.object, parse(t, c.format, c.name)))
		})
	}
}
