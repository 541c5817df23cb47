package sites_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/sites"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// returns are jumps to the return thunk, as tail calls become in code that returns through
// it, of the machines that have one. The first %s is where they go.
var returns = map[*toolchains.Machine]struct{ sites, thunk, stub string }{
	toolchains.AMD64: {
		sites: "9: jmp %[1]s\nrecord hit\n9: .byte 0xe9\n.long %[1]s - . - 4\n.byte 0xcc\nrecord hit",
		thunk: "call 1f\n0: pause\nlfence\njmp 0b\n1: lea 8(%rsp), %rsp\nret",
		stub:  "ret\nint3",
	},
	toolchains.I386: {
		sites: "9: jmp %[1]s\nrecord hit\n9: .byte 0xe9\n.long %[1]s - . - 4\n.byte 0xcc\nrecord hit",
		thunk: "call 1f\n0: pause\nlfence\njmp 0b\n1: lea 4(%esp), %esp\nret",
		stub:  "ret\nint3",
	},
	toolchains.S390X: {
		sites: "9: jg %[1]s\nrecord hit",
		thunk: "exrl %r0, 1f\n0: j 0b\n1: br %r14",
		stub:  "br %r14",
	},
}

// thunked is a program of such jumps, which are sites of probe calls.
const thunked = `
.macro record kind
	.pushsection sdt_instances_set, "aw", %%progbits
	.balign 8
	.dc.a sdt_app___\kind, 9b
	.popsection
.endm
.text
.globl main, _start
.type main, %%function
main:
_start:
%[1]s
.size main, . - main
.globl %[2]s
.hidden %[2]s
.section .text.elsewhere, "ax", %%progbits
.balign 16
.type %[2]s, %%function
%[2]s: %[3]s
.size %[2]s, . - %[2]s
.section .data.probes, "aw", %%progbits
.balign 8
sdt_app___hit: .dc.a 1
.section .note.GNU-stack, "", %%progbits
`

// liveCase is a program whose sites go somewhere, and what they are taken for.
type liveCase struct {
	name   string
	source string
	// whole is the state with symbols, named that with the names of custom stubs, and
	// stripped that without symbols.
	whole, named, stripped string
}

// liveCases returns the disabled forms of a machine that go somewhere, and their live
// twins: calls and jumps of stubs whose code is that of a helper.
func liveCases(t *testing.T, m *toolchains.Machine) []liveCase {
	t.Helper()
	c, mark := formsOf(t, m), "\n"+machineOf(t, m).Traits().HelperMark.Text
	stubs := fmt.Sprintf(source, c.sites, c.loads, c.sets)
	called := func(prefix string) string { // the helpers are stubs
		return strings.NewReplacer("loads", prefix+"app___l", "sets", prefix+"app___s").Replace(stubs)
	}
	all := []liveCase{
		{"helpers", fmt.Sprintf(source, c.sites, c.loads+mark, c.sets+mark), sites.Disabled, sites.Disabled, sites.Disabled},
		{"stubs", called("__dtrace_isenabled_"), sites.Unconverted, sites.Unknown, sites.Unknown},
		{"custom stubs", called("custom_enabled_"), sites.Unknown, sites.Unconverted, sites.Unknown},
	}
	if r, ok := returns[m]; ok {
		jumps := func(to, code string) string { return fmt.Sprintf(thunked, fmt.Sprintf(r.sites, to), to, code) }
		thunk := machineOf(t, m).Traits().ReturnThunk.Symbol
		all = append(all,
			liveCase{"thunk", jumps(thunk, r.thunk), sites.Disabled, sites.Disabled, sites.Disabled},
			liveCase{"another thunk", jumps(thunk, r.stub), sites.Disabled, sites.Disabled, sites.Unknown},
			liveCase{"tail calls", jumps("__dtrace_probe_app___hit", r.stub), sites.Unconverted, sites.Unknown, sites.Unknown},
			liveCase{"custom tail calls", jumps("custom_app___hit", r.stub), sites.Unknown, sites.Unconverted, sites.Unknown},
			liveCase{"others", jumps("elsewhere", r.stub), sites.Unknown, sites.Unknown, sites.Unknown},
		)
	}
	return all
}

// A call or a jump of a stub is never taken for a disabled form, whatever names are given
// and whether the file has symbols.
func TestLiveTwins(t *testing.T) {
	custom := patch.Names{Prefixes: []string{"custom_"}, EnabledPrefixes: []string{"custom_enabled_"}}
	for _, m := range product.Few(t.Name(), toolchains.All()) {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			ld, strip := m.Tool("ld"), m.Tool("strip")
			if !m.Has(toolchains.GCC) {
				ld, strip = filepath.Join(toolchains.LLVMPrograms(), "ld.lld"), toolchains.LLVM("llvm-strip")
			}
			tools.Need(t, ld, strip)
			for _, c := range liveCases(t, m) {
				object := assemble(t, m, c.source)
				directory := t.TempDir()
				merged, program, stripped := filepath.Join(directory, "merged.o"), filepath.Join(directory, "program"), filepath.Join(directory, "stripped")
				tools.Must(t, ld, "-r", "-o", merged, object)
				tools.Must(t, ld, "-o", program, object)
				tools.Must(t, strip, "-o", stripped, program)
				for _, path := range []string{object, merged, program} {
					checkStates(t, c.name, path, patch.DefaultNames(), c.whole)
					checkStates(t, c.name+" by name", path, custom, c.named)
				}
				checkStates(t, c.name, stripped, patch.DefaultNames(), c.stripped)
				checkStates(t, c.name+" by name", stripped, custom, c.stripped)
			}
		})
	}
}

// checkStates compares the states of the sites that go somewhere. The others are disabled.
func checkStates(t *testing.T, name, path string, names patch.Names, want string) {
	t.Helper()
	o, im := openFile(t, path)
	space, going := sites.New(o, im, im, 0, sites.Conventions{Names: names, ProbePrefix: "sdt_", Layouts: []linkerset.Layout{{}}}), 0
	if err := space.Read(); err != nil || len(space.Faults.Records) > 0 || len(space.Sites) == 0 {
		t.Fatal(name, path, space.Sites, space.Faults, err)
	}
	for i := range space.Sites {
		e := &space.Sites[i]
		got := expect.Value(space.Content(e))(t)
		state := sites.Disabled
		if _, ok := im.Machine().Branch(sites.CodeAround(im, e.Address), e.Address.Offset); ok {
			state = want
			going++
		}
		if got.State != state || (got.To != "") != (state == sites.Unknown) || e.Kind == arch.Enabled != strings.HasPrefix(got.Kind, "isenabled") {
			t.Errorf("%s: %s: %s: got %+v, want %s", name, filepath.Base(path), im.Place(e.Address), got, state)
		}
	}
	if going == 0 {
		t.Errorf("%s: no site goes anywhere", name)
	}
}

var options = sites.Conventions{Names: patch.DefaultNames(), ProbePrefix: "sdt_"}

// A breakpoint over the first bytes of a site arms it, whatever its form and length, and the kind of
// the site is that of the file.
func TestBreakpointsOverForms(t *testing.T) {
	kinds := map[string]int{}
	for _, f := range objects.Committed(t, 1<<20) {
		data, ok := converted.Object(t, f.Data)
		if !ok {
			continue
		}
		path := filepath.Join(t.TempDir(), "file.o")
		disk.Write(t, path, string(data))
		object, file := openFile(t, path)
		entries, _, err := linkerset.Layout{}.Read(file)
		expect.OK(t, err, "%s", f.Name)
		for _, bytes := range file.Machine().Traits().Breakpoints {
			copied := append([]byte{}, data...)
			for i := range entries {
				site := entries[i].Address
				copy(copied[object.Sections[site.Section].Offset+site.Offset:], bytes)
			}
			o := objects.Open(t, copied)
			memory := expect.Value(image.Open(o, machines.Lookup(o.ABI())))(t)
			before := sites.New(object, file, file, 0, options)
			armed := sites.New(object, file, memory, 0, options)
			for i := range entries {
				site := &sites.Site{Entry: entries[i]}
				want, got := expect.Value(before.Content(site))(t), expect.Value(armed.Content(site))(t)
				if want.State == sites.Disabled && (got.State != sites.Armed || got.Kind != want.Kind) {
					t.Errorf("%s: %s: got %+v, before the breakpoint %+v", f.Name, file.Place(entries[i].Address), got, want)
				}
				if want.State == sites.Disabled {
					kinds[file.Machine().Traits().Name+" "+want.Kind]++
				}
			}
		}
	}
	if len(kinds) < 30 || kinds["amd64 "+arch.ListedKind(arch.Probe, arch.Call)] == 0 {
		t.Errorf("got only %v", kinds)
	}
}

// What Linux 7.3 puts over the NOP of headers: a breakpoint, a call, and what is left of that.
func TestSitesOfHeaders(t *testing.T) {
	open := func(code string) (*elfreloc.Object, image.Image) {
		sites := ".macro site bytes:vararg\n9: .byte \\bytes\nrecord hit\n.endm\nsite " + code
		return openFile(t, assemble(t, toolchains.AMD64, fmt.Sprintf(thunked, sites, "__x86_return_thunk", "ret")))
	}
	object, file := open("0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0")
	entries, _, err := linkerset.Layout{}.Read(file)
	if err != nil || len(entries) != 1 {
		t.Fatal(entries, err)
	}
	for _, c := range []struct{ code, want string }{
		{"0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", sites.Disabled},
		{"0xcc, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", sites.Armed},
		{"0x90, 0xcc, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0", sites.Armed},
		{"0x90, 0x48, 0x8d, 0x64, 0x24, 0x80, 0xe8, 5, 0xcf, 0xff, 0xff", sites.Armed},
		{"0x90, 0xe9, 5, 0xcf, 0xff, 0xff, 0, 0, 0, 0, 0", sites.Armed}, // sdtconvert trace
		{"0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0xe8, 5, 0xcf, 0xff, 0xff", sites.Disabled},
		{"0x90, 0x48, 0x8d, 0x64, 0x24, 0x88, 0xe8, 5, 0xcf, 0xff, 0xff", sites.Unknown},
	} {
		_, memory := open(c.code)
		got := expect.Value(sites.New(object, file, memory, 0, options).Content(&sites.Site{Entry: entries[0]}))(t)
		expect.Equal(t, [2]string{arch.ListedKind(arch.Probe, arch.Call), c.want}, [2]string{got.Kind, got.State}, "%s", c.code)
	}
}
