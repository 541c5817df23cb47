package sites_test

import (
	"path/filepath"
	"slices"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/sites"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
)

// source is a program of sites of is-enabled tests, each with its record: those that
// load the semaphore hit, in each of the machine's ways, and those of zero, which load
// none. The helper of a machine is loads, or sets where the result is 0.
const source = `
.macro record kind
	.pushsection sdt_isenabled_set, "aw", %%progbits
	.balign 8
	.dc.a sdt_app___\kind, 9b
	.popsection
.endm
.text
.globl main, _start
.type main, %%function
main:
_start:
%s
.size main, . - main
.globl loads, sets
.hidden loads
.hidden sets
.section .text.helper, "ax", %%progbits
.balign 16
.type loads, %%function
%s
.size loads, . - loads
.type sets, %%function
%s
.size sets, . - sets
.section .data.probes, "aw", %%progbits
.balign 8
sdt_app___hit: .dc.a 1
sdt_app___zero: .dc.a 2
.section .probes, "aw", %%progbits
.balign 4
.weak app_hit_semaphore
.hidden app_hit_semaphore
.type app_hit_semaphore, %%object
.size app_hit_semaphore, 2
app_hit_semaphore: .byte 3, 0, 0, 0
.section .note.GNU-stack, "", %%progbits
`

// forms are sites and helpers, as Disable and Stub give them.
type forms struct{ sites, loads, sets string }

// ppc64Forms are those of both byte orders.
var ppc64Forms = forms{
	sites: `
9: bl loads
record hit
9: b loads
record hit
9: li 3, 0
record zero
9: b sets
record zero
`,
	loads: "loads: mflr 0\nbcl 20, 31, 1f\n1: mflr 3\nmtlr 0\naddis 3, 3, app_hit_semaphore-1b@ha\nlhz 3, app_hit_semaphore-1b@l(3)\nblr",
	sets:  "sets: li 3, 0\nblr",
}

// code are the forms of each machine.
var code = map[*toolchains.Machine]forms{
	toolchains.AMD64: {
		sites: `
9: call loads
record hit
9: mov app_hit_semaphore(%rip), %eax
record hit
9: addr32 call loads
record hit
9: jne loads
record hit
9: jmp loads
record hit
9: xor %eax, %eax
nopl (%rax)
record zero
9: .byte 0xe9
.long sets - . - 4
record zero
`,
		loads: "loads: endbr64\nmovzwl app_hit_semaphore(%rip), %eax\nret\nint3",
		sets:  "sets: xor %eax, %eax\nret\nint3",
	},
	toolchains.ARM: {
		sites: `
.syntax unified
.arch armv7-a
.arm
9: bl loads
record hit
9: b loads
record hit
9: blne loads
record hit
9: bne loads
record hit
9: mov r0, #0
record zero
9: b sets
record zero
9: bne sets
record zero
.thumb
9: bl loads
record hit
9: b.w loads
record hit
9: mov.w r0, #0
record zero
9: movs r0, #0
bx lr
record zero
nop
9: b.w sets
record zero
.arm
`,
		loads: ".arm\nloads: movw r0, #:lower16:(app_hit_semaphore - . - 16)\nmovt r0, #:upper16:(app_hit_semaphore - . - 12)\nadd r0, pc, r0\nldrh r0, [r0]\nbx lr",
		sets:  ".arm\nsets: mov r0, #0\nbx lr",
	},
	toolchains.ARM64: {
		sites: `
9: bl loads
record hit
9: b loads
record hit
9: mov w0, #0
record zero
9: b sets
record zero
`,
		loads: "loads: bti c\nadrp x0, app_hit_semaphore\nldrh w0, [x0, :lo12:app_hit_semaphore]\nret",
		sets:  "sets: mov w0, #0\nret",
	},
	toolchains.I386: {
		sites: `
9: call loads
record hit
9: .byte 0x67, 0xe8
.long loads - . - 4
record hit
9: jne loads
record hit
9: jmp loads
record hit
9: xor %eax, %eax
.byte 0x8d, 0x76, 0
record zero
9: .byte 0xe9
.long sets - . - 4
record zero
`,
		loads: "loads: endbr32\ncall 1f\n0: movzwl app_hit_semaphore-0b(%eax), %eax\nret\nint3\n1: mov (%esp), %eax\nret\nint3",
		sets:  "sets: xor %eax, %eax\nret\nint3",
	},
	toolchains.LOONG64: {
		sites: `
9: bl loads
record hit
9: b loads
record hit
9: pcaddu18i $ra, %call36(loads)
jirl $ra, $ra, 0
record hit
9: pcaddu18i $t8, %call36(loads)
jr $t8
record hit
9: move $a0, $zero
record zero
9: move $a0, $zero
move $zero, $zero
record zero
9: move $a0, $zero
ret
record zero
9: b sets
record zero
`,
		loads: "loads: pcalau12i $a0, %pc_hi20(app_hit_semaphore)\nld.hu $a0, $a0, %pc_lo12(app_hit_semaphore)\nret",
		sets:  "sets: move $a0, $zero\nret",
	},
	toolchains.PPC64:   ppc64Forms,
	toolchains.PPC64LE: ppc64Forms,
	toolchains.RISCV64: {
		sites: `
.option norvc
.option norelax
9: auipc a0, %pcrel_hi(app_hit_semaphore)
lhu a0, %pcrel_lo(9b)(a0)
record hit
9: tail loads
record hit
9: li a0, 0
nop
record zero
9: li a0, 0
ret
record zero
`,
		loads: ".option norvc\nloads: auipc a0, %pcrel_hi(app_hit_semaphore)\nlhu a0, %pcrel_lo(loads)(a0)\nret",
		sets:  "sets: li a0, 0\nret",
	},
	toolchains.S390X: {
		sites: `
9: llhrl %r2, app_hit_semaphore
record hit
9: jg loads
record hit
9: jge loads
record hit
9: lghi %r2, 0
nopr %r0
record zero
9: lghi %r2, 0
br %r14
record zero
9: jg sets
record zero
9: jgne sets
record zero
`,
		loads: "loads: llhrl %r2, app_hit_semaphore\nbr %r14",
		sets:  "sets: lghi %r2, 0\nbr %r14",
	},
}

func formsOf(t *testing.T, m *toolchains.Machine) forms {
	t.Helper()
	c, ok := code[m]
	if !ok {
		t.Fatal("no code for the machine")
	}
	return c
}

// machineOf returns the machine of a toolchain.
func machineOf(t *testing.T, m *toolchains.Machine) arch.Machine {
	t.Helper()
	all := machines.All()
	i := slices.IndexFunc(all, func(a arch.Machine) bool { return a.Traits().Name == m.Name })
	if i < 0 {
		t.Fatal("no machine of that name")
	}
	return all[i]
}

// assemble makes an object of assembly.
func assemble(t *testing.T, m *toolchains.Machine, text string) string {
	t.Helper()
	as := m.CC(toolchains.Clang)
	if m.Has(toolchains.GCC) {
		as = m.CC(toolchains.GCC)
	}
	tools.Need(t, as[0])
	in, out := filepath.Join(t.TempDir(), "sites.s"), filepath.Join(t.TempDir(), "sites.o")
	disk.Write(t, in, text)
	flags := append(slices.Clone(as[1:]), "-c", "-o", out, in)
	if m == toolchains.ARM64 {
		flags = append(flags, "-march=armv8.5-a")
	}
	tools.Must(t, as[0], flags...)
	return out
}

func openFile(t *testing.T, path string) (*elfreloc.Object, image.Image) {
	t.Helper()
	o := tools.OpenELF(t, path)
	return o, expect.Value(image.Open(o, machines.Lookup(o.ABI())))(t)
}

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
