package sites_test

import (
	"testing"

	"sdtconvert/internal/sites"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/linkerset"
)

// folded has one address with the records of two probes, whose notes come in the other order, and a NOP with the note of a third,
// twice, and of a fourth.
const folded = `
.macro note at:req, name:req, operands:req
	.pushsection .note.stapsdt, "", "note"
	.balign 4
	.4byte 8, 2f - 1f, 3
	.asciz "stapsdt"
1:	.8byte \at, 0, 0
	.asciz "app"
	.asciz "\name"
	.asciz "\operands"
2:	.balign 4
	.popsection
.endm
.macro record probe
	.pushsection sdt_instances_set, "aw", %progbits
	.balign 8
	.8byte \probe, first
	.popsection
.endm
.text
.globl main
.type main, %function
main:
first: nop
second: nop
ret
.size main, . - main
record sdt_app___a
record sdt_app___b
note second, c, "4@%eax"
note first, b, "4@%esi"
note first, a, "4@%edi"
note second, c, "4@%ebx"
note second, d, "4@%ecx"
.section .data.probes, "aw", %progbits
.globl sdt_app___a, sdt_app___b
sdt_app___a: .8byte 1
sdt_app___b: .8byte 2
`

// Each probe of a site is there once: a record has the note of its own probe, and a site without a record that of each probe, the first
// of several.
func TestFoldedNotes(t *testing.T) {
	o, im := openFile(t, assemble(t, toolchains.AMD64, folded))
	space := sites.New(o, im, im, 0, sites.Conventions{ProbePrefix: "sdt_", Layouts: []linkerset.Layout{{}}})
	expect.OK(t, space.Read())
	type site struct {
		Source         sites.Source
		Name, Operands string
		Offset         uint64
	}
	var got []site
	for i := range space.Sites {
		s := &space.Sites[i]
		got = append(got, site{s.Source, expect.Value(space.Probe(s))(t).Name, s.Note.Args, s.Address.Offset})
	}
	expect.Equal(t, []site{
		{sites.FromRecord, "a", "4@%edi", 0}, {sites.FromRecord, "b", "4@%esi", 0},
		{sites.FromNote, "c", "4@%eax", 1}, {sites.FromNote, "d", "4@%ecx", 1},
	}, got)
	expect.Equal(t, 0, len(space.Faults.Records)+len(space.Faults.Notes))
}
