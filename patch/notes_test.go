package patch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// What no tracer was tried with is not written.
func TestNamesTooLongForNotes(t *testing.T) {
	object := func(size int) []byte {
		return converted.Assemble(t, "\t.text\nf:\tnop\n\tcall __dtrace_probe_shop___"+strings.Repeat("n", size)+"\n\tret\n")
	}
	if _, err := converted.Bytes(t, object(8188), withNotes()); err != nil {
		t.Error(err)
	}
	data := object(8189)
	_, err := converted.Bytes(t, data, withNotes())
	if want := ".text+0x1: provider and name of the probe have 8193 bytes, and a note has at most 8192; choose shorter ones"; err == nil ||
		!strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if _, err := converted.Bytes(t, data, defaults()); err != nil {
		t.Errorf("without notes: %v", err)
	}
}

// OmittedArgs reads what Apply reads, and only Apply tells what is wrong with it.
func TestBrokenDebugInformationIsAWarningOfApply(t *testing.T) {
	data := converted.Assemble(t, "\t.text\nf:\tnop\n\tcall __dtrace_probe_shop___sale\n\tcall __dtrace_probe_shop___refund\n\tret\n"+
		"\t.section .debug_info,\"\",@progbits\n\t.long 0x100\n\t.section .debug_abbrev,\"\",@progbits\n\t.byte 0\n")
	o := objects.Open(t, data)
	plan := expect.Value(patch.Examine(o, withNotes()))(t)
	leaveOut := func() {
		if out, err := plan.OmittedArgs(); err != nil || len(out) > 0 {
			t.Errorf("left out: %v, %v", out, err)
		}
	}
	leaveOut()
	if len(plan.Warnings) > 0 {
		t.Errorf("before Apply: %v", plan.Warnings)
	}
	expect.OK(t, plan.Apply(expect.Value(o.Edit())(t)))
	leaveOut()
	if len(plan.Warnings) != 1 || !strings.HasPrefix(plan.Warnings[0].Error(), "a.o: debug information: .debug_info+0x0: ") {
		t.Errorf("after Apply: %v", plan.Warnings)
	}
}

// The operands are what readelf -p .sdt_operands shows behind each address.
func TestOperandsOfMarkedNops(t *testing.T) {
	for name, want := range map[string][]string{
		"nops.amd64-gcc12-O2.o":        {"", "-4@%edi 1@%sil", "-8@%rdi -4@$7"},
		"nops.amd64-clang14-O2.o":      {"", "-4@%edi 1@%al", "-8@%rdi -4@$7"},
		"nops.amd64-clang19-crel.o":    {"", "-4@%edi 1@%al", "-8@%rdi -4@$7"},
		"nops.arm64-gcc12-O2.o":        {"", "-4@x0 1@x1", "-8@x0 -4@7"},
		"nops.arm64be-clang19-O2.o":    {"", "-4@x0 1@x1", "-8@x0 -4@7"},
		"nops.loong64-clang19-O2.o":    {"", "-4@$r4 1@$r5", "-8@$r4 -4@7"},
		"nops.riscv64-gcc12-O2.o":      {"", "-4@a0 1@a1", "-8@a0 -4@7"},
		"nops.riscv64-clang19-O2.o":    {"", "-4@a0 1@a1", "-8@a0 -4@7"},
		"nopsmerged.amd64-gcc12-bfd.o": {"", "-4@%edi 1@%sil", "-8@%rdi -4@$7", "-4@%edi -4@$4", "-8@%rdi -4@$8", ""},
	} {
		plan := planOf(t, name, defaults())
		var got []string
		for _, s := range plan.Sites {
			got = append(got, s.Operands)
			if s.Change.Site.Form != arch.Nop || !bytes.Equal(s.Change.New, s.Change.Site.Code) {
				t.Errorf("%s: %+v", name, s.Change)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" || len(plan.Refused) > 0 {
			t.Errorf("%s: %v %s", name, plan.Errors(), diff)
		}
	}
}

// nopsObject is an object of marked nops as bytes, and where its operands and their
// relocations are in these.
type nopsObject struct {
	data         []byte
	text, relocs elfreloc.Section
	header       int // of the section of operands
}

func readNops(t *testing.T) nopsObject {
	n := nopsObject{data: objects.Read(t, "nops.amd64-gcc12-O2.o")}
	o := objects.Open(t, n.data)
	at := objects.Section(t, o, patch.OperandsSection)
	n.text, n.relocs = o.Sections[at], o.Sections[objects.Section(t, o, ".rela"+patch.OperandsSection)]
	n.header = int(binary.LittleEndian.Uint64(n.data[40:])) + 64*at
	return n
}

// Every fault is one error, which names the entry.
func TestOperandsThatMakeNoSense(t *testing.T) {
	word := binary.LittleEndian.PutUint64
	for name, c := range map[string]struct {
		change func(n nopsObject, text, relocs []byte)
		want   string
	}{
		"text that is cut off":    {func(n nopsObject, _, _ []byte) { word(n.data[n.header+32:], n.text.Size-1) }, "+0x20: operands without a NUL behind them"},
		"an address that is":      {func(n nopsObject, _, _ []byte) { word(n.data[n.header+32:], 0x20+5) }, "+0x20: an entry that the section's end cuts off after 5 bytes"},
		"a control character":     {func(_ nopsObject, text, _ []byte) { text[0x11+2] = '\n' }, "+0x9: byte 0x0a in operands, want printable ASCII"},
		"a byte beyond ASCII":     {func(_ nopsObject, text, _ []byte) { text[0x11+2] = 0xe9 }, "+0x9: byte 0xe9 in operands, want printable ASCII"},
		"no relocation":           {func(_ nopsObject, _, relocs []byte) { word(relocs[24:], 3) }, "+0x9: no relocation for the address of a site; want entries of a word and a string, without padding"},
		"bytes more":              {func(_ nopsObject, text, _ []byte) { text[0x11+2] = 0 }, "+0x14: no relocation for the address of a site; want entries of a word and a string, without padding"},
		"another relocation":      {func(_ nopsObject, _, relocs []byte) { relocs[8] = 2 }, "+0x0: relocation R_X86_64_PC32, want R_X86_64_64"},
		"an address elsewhere":    {func(_ nopsObject, _, relocs []byte) { word(relocs[16:], 0x1000) }, "+0x0: the address .text+0x1000, beyond the section's 41 bytes; want a site's"},
		"an address of nothing":   {func(n nopsObject, _, relocs []byte) { binary.LittleEndian.PutUint32(relocs[12:], stubOf(n)) }, `+0x0: the address of "__dtrace_probe_nops___none", which is in no section of the object; want a site's`},
		"two entries for a site":  {func(_ nopsObject, _, relocs []byte) { copy(relocs[24+16:], relocs[16:24]) }, "+0x9: a second entry for the site at .text+0x0"},
		"a site without an entry": {func(_ nopsObject, _, relocs []byte) { word(relocs[16:], 1) }, `.text+0x0: in nops_leaf+0x0: R_X86_64_NONE against "__dtrace_probe_nops___none": got a nop without an entry in .sdt_operands; let the assembly that marks it write an entry of .sdt_operands, and strip none`},
	} {
		n := readNops(t)
		c.change(n, n.data[n.text.Offset:][:n.text.Size], n.data[n.relocs.Offset:][:n.relocs.Size])
		out, err := patch.Convert(objects.Open(t, n.data), defaults())
		want := c.want
		if !strings.HasPrefix(want, ".") {
			want = patch.OperandsSection + want
		}
		if err == nil || out != nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !errors.As(err, new(*elfreloc.Error)) {
			t.Errorf("%s:\ngot  %v\nwant %s", name, err, want)
		}
	}
}

// A conversion empties the section that shows unconverted sites in images. If it converts none
// that a relocation marks, it leaves the section as it is.
func TestUnconvertedSectionIsEmptied(t *testing.T) {
	const nop = "990:\t.byte 0x0f,0x1f,0x44,0x00,0x00\n\t.reloc 990b,BFD_RELOC_NONE,__dtrace_probe_shop___item\n" +
		"\t.weak __dtrace_probe_shop___item\n\t.hidden __dtrace_probe_shop___item\n" +
		"\t.pushsection .sdt_operands,\"e?\",@progbits\n\t.dc.a 990b\n\t.asciz \"\"\n\t.popsection\n\tret\n"
	const mark = "\t.section .sdt_unconverted,\"MS\",@progbits,1\n\t.asciz \"_shop___item\"\n"
	for text, want := range map[string]uint64{onlyCall + mark: 13, "\t.text\nf:\n" + nop + mark: 0} {
		out := expect.Value(converted.Bytes(t, converted.Assemble(t, text), defaults()))(t)
		expect.Equal(t, want, disk.ELF(t, out).Section(patch.UnconvertedSection).Size, "bytes after %s", text)
		again, err := patch.Convert(objects.Open(t, out), defaults())
		if err != nil || again != nil {
			t.Errorf("converted again: %v, %v", again, err)
		}
	}
}

// stubOf returns the symbol of the first stub.
func stubOf(n nopsObject) uint32 {
	for i := uint32(1); ; i++ {
		o, _ := elfreloc.Open(bytes.NewReader(n.data), int64(len(n.data)), "a.o")
		if syms, _ := o.Symbols(); strings.HasPrefix(syms.Name(int(i)), "__dtrace_probe_") {
			return i
		}
	}
}

// Without its section of operands an object is refused, a line for each site.
func TestNopsWithoutOperandsAreRefused(t *testing.T) {
	n := readNops(t)
	n.data[n.header] ^= 1 // another name
	plan := expect.Value(patch.Examine(objects.Open(t, n.data), defaults()))(t)
	if len(plan.Sites) != 0 || len(plan.Refused) != 3 {
		t.Errorf("%d sites, %d refusals", len(plan.Sites), len(plan.Refused))
	}
	if out, err := plan.Output(); err == nil || out != nil {
		t.Errorf("got %v, %v", out, err)
	}
}

// What a linker has dropped, or what another conversion has done, is passed over.
func TestEntriesOfNoSiteArePassedOver(t *testing.T) {
	n := readNops(t)
	relocs := n.data[n.relocs.Offset:][:n.relocs.Size]
	want := planOf(t, "nops.amd64-gcc12-O2.o", defaults())
	clear(relocs[8:24]) // R_X86_64_NONE
	plan, err := patch.Examine(objects.Open(t, n.data), defaults())
	if err != nil || len(plan.Refused) != 1 || len(plan.Sites) != len(want.Sites)-1 {
		t.Errorf("got %v, %+v", err, plan)
	}
}

// An is-enabled test has a result, and nothing here tells it.
func TestMarkedTestsAreRefused(t *testing.T) {
	n := readNops(t)
	at := bytes.Index(n.data, []byte("__dtrace_probe_nops___none\x00"))
	copy(n.data[at:], "__dtrace_isenabled_s___non")
	_, err := patch.Convert(objects.Open(t, n.data), defaults())
	expect.Error(t, err, "got an isenabled-nop; call the stub of an is-enabled test")
}

// Sections that tie probes to guards are pairs of strings, or the object is refused.
func TestGuardsOfProbes(t *testing.T) {
	for text, want := range map[string]string{
		`.asciz "_shop___item", "_shop___other", "_shop___item", "_shop___other"`: "",
		`.asciz "_shop___item", "_a", "_shop___item", "_b"`:                       ".sdt_guards+0x10: the probe shop___item has the guards a and b, want one",
		`.asciz "_shop___item"`:         `.sdt_guards+0x0: want pairs of strings, each "_" and an id`,
		`.asciz "_shop___item", "b"`:    `.sdt_guards+0x0: want pairs`,
		`.asciz "_", "_b"`:              `.sdt_guards+0x0: want pairs`,
		`.ascii "_shop___item\0_b"`:     `.sdt_guards+0x0: want pairs`,
		`.asciz "_a", "_b"; .byte 0x5f`: `.sdt_guards+0x6: want pairs`,
	} {
		object := converted.Assemble(t, onlyCall+"\t.section .sdt_guards,\"e\",@progbits\n\t"+text+"\n")
		options := defaults()
		options.Notes = patch.WithNotes
		out, err := converted.Bytes(t, object, options)
		if want == "" {
			expect.OK(t, err)
			continue
		}
		expect.Error(t, err, want)
		if out != nil {
			t.Errorf("%s: output beside an error", text)
		}
	}
}
