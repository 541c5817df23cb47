package patch_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// shopPlan plans the conversion of an object that calls the stubs of probes, with notes for DTrace.
func shopPlan(t *testing.T, prototypes string, ids ...string) *patch.Plan {
	t.Helper()
	source := "\t.text\nf:\tnop\n"
	for _, id := range ids {
		source += "\tcall __dtrace_probe_shop___" + id + "\n"
	}
	opts := withNotes()
	opts.DTrace = true
	opts.Prototypes = expect.Value(patch.ReadPrototypes(strings.NewReader(prototypes), "p.h"))(t)
	return expect.Value(patch.Examine(objects.Open(t, assemble(t, source+"\tret\n")), opts))(t)
}

// Probes whose arguments DTrace would not read are hidden from it, with the reason.
func TestProbesHiddenFromDTrace(t *testing.T) {
	many := func(n int) string { return "shop___many(" + strings.TrimSuffix(strings.Repeat("int,", n), ",") + ")\n" }
	for _, c := range []struct {
		prototypes string
		ids        string
		want       []string
	}{
		{"shop___a(int)\nshop___b()\n", "a b", nil},
		{"shop___a(int)\n", "a b", []string{"probe shop___b is hidden from DTrace: nothing tells all arguments; compile with -g, or give --prototypes"}},
		{"", "b a b", []string{"2 probes, one of them shop___b, are hidden from DTrace: nothing tells all arguments; compile with -g, or give --prototypes"}},
		{many(255), "many", nil},
		{many(256), "many", []string{"probe shop___many is hidden from DTrace: there are 256 arguments, and there is room for 255"}},
		{many(256), "a many", []string{
			"probe shop___a is hidden from DTrace: nothing tells all arguments; compile with -g, or give --prototypes",
			"probe shop___many is hidden from DTrace: there are 256 arguments, and there is room for 255",
		}},
	} {
		plan := shopPlan(t, c.prototypes, strings.Fields(c.ids)...)
		expect.OK(t, plan.Apply(expect.Value(plan.Scan.Object.Edit())(t)))
		var got []string
		for _, warning := range plan.Warnings {
			got = append(got, strings.TrimPrefix(warning.Error(), "a.o: "))
		}
		slices.Sort(got)
		expect.Equal(t, c.want, got, "%q of %.100q", c.ids, c.prototypes)
	}
}

// Notes leave out arguments from the first on that is nowhere, as debug information declares them.
func TestOmittedArguments(t *testing.T) {
	tools.Need(t, "gcc")
	file := filepath.Join(t.TempDir(), "a.c")
	for _, c := range []struct{ types, values, want string }{
		{"int", "1", ""},
		{"int, double", "1, 2", "argument 2, a floating-point number"},
		{"int, double, int", "1, 2, 3", "argument 2, a floating-point number, and the one behind it"},
		{"double, int, int", "1, 2, 3", "argument 1, a floating-point number, and those behind it"},
		{"double, int, int, int", "1, 2, 3, 4", "argument 1, a floating-point number, and those behind it"},
		{"int, __int128", "1, 2", "argument 2, an integer of 16 bytes"},
	} {
		disk.Write(t, file, fmt.Sprintf("void __dtrace_probe_shop___a(%s); void __dtrace_probe_shop___b(int);\n"+
			"int f(void) { __dtrace_probe_shop___b(1); __dtrace_probe_shop___a(%s); __dtrace_probe_shop___b(2); return 1; }\n", c.types, c.values))
		tools.Must(t, "gcc", "-g", "-O2", "-c", "-o", file+".o", file)
		opts := withNotes()
		opts.DTrace = true
		plan := expect.Value(patch.Examine(objects.Open(t, disk.Read(t, file+".o")), opts))(t)
		got := map[string]string{}
		for stub, text := range expect.Value(plan.OmittedArgs())(t) {
			got[stub.ID] = text
		}
		want, hidden := map[string]string{}, ""
		if c.want != "" {
			number, _, _ := strings.Cut(c.want, ",")
			want["shop___a"], hidden = c.want, "a.o: probe shop___a is hidden from DTrace: "+number+" is nowhere that a note can tell"
		}
		expect.Equal(t, want, got, "%s", c.types)
		expect.OK(t, plan.Apply(expect.Value(plan.Scan.Object.Edit())(t)))
		warnings := ""
		for _, warning := range plan.Warnings {
			warnings += warning.Error()
		}
		expect.Equal(t, hidden, warnings, "%s", c.types)
	}
}

// On machines of 32 bits, integers of 64 bits are in two registers.
func TestOmittedIntegersOfTwoRegisters(t *testing.T) {
	opts := withNotes()
	opts.Prototypes = expect.Value(patch.ReadPrototypes(strings.NewReader("existing___new(int, long long)\nexisting___weak(int)\n"), "p.h"))(t)
	got := map[string]string{}
	for stub, text := range expect.Value(planOf(t, "existing.thumb-clang19-O2.o", opts).OmittedArgs())(t) {
		got[stub.ID] = text
	}
	expect.Equal(t, map[string]string{"existing___new": "argument 2, an integer of 8 bytes, in two registers"}, got)
}

// source knows of one probe.
type source struct {
	probe linkerset.Probe
	err   error
}

func (s source) Probe(string) (linkerset.Probe, bool, error) { return s.probe, s.probe.ID != "", s.err }

// What other files say about a probe counts where the object does not define it.
func TestProbesOfOtherFiles(t *testing.T) {
	for _, c := range []struct {
		source source
		want   string // provider, name and arguments
	}{
		{source{}, "shop\x00item\x00"},
		{source{probe: linkerset.Probe{ID: "shop___item", Provider: "elsewhere", Name: "other"}}, "elsewhere\x00other\x00"},
		{source{err: errors.New("two definitions")}, "a.o: two definitions"},
	} {
		opts := withNotes()
		opts.ProbeSource = c.source
		got, err := convertBytes(t, assemble(t, onlyCall), opts)
		if err != nil {
			got = []byte(err.Error())
		}
		expect.Contains(t, string(got), c.want, "%v", fmt.Sprint(c.source))
	}
}

// Code behind a call that reads the return address is refused, behind any call of a section.
func TestCallsWhoseReturnAddressIsRead(t *testing.T) {
	const call, read = "\tcall __dtrace_probe_shop___item\n", "\tmov -8(%rsp), %rax\n"
	for source, want := range map[string]int{
		call: 0, call + read: 1, call + call + read: 1, call + read + call + read: 2, read + call: 0, call + "\tpush %rbx\n" + read: 0,
		call + "\t.section .text.more,\"ax\",@progbits\n" + call + read: 1,
	} {
		o := objects.Open(t, assemble(t, "\t.text\nf:\n"+source+"\tret\n"))
		plan := expect.Value(patch.Examine(o, defaults()))(t)
		expect.Equal(t, want, len(plan.Refused), "%s", source)
		for _, err := range plan.Errors() {
			expect.Error(t, err, "whose return address is read behind it")
		}
	}
}

// Code of kernels returns through a thunk that another object defines.
func TestTargetOfReturnThunks(t *testing.T) {
	const jump = "\t.text\nf:\tjmp __x86_return_thunk\n"
	for source, want := range map[string]patch.Target{
		jump: patch.LinuxKernel, jump + "\t.globl __x86_return_thunk\n__x86_return_thunk: ret\n": patch.LinuxProgram,
		"\t.text\nf:\tjmp __x86_return_thunk_other\n": patch.LinuxProgram, "\t.text\nf:\tret\n": patch.LinuxProgram,
		"\t.text\nf:\tjmp my__x86_return_thunk\n": patch.LinuxProgram,
	} {
		expect.Equal(t, want, patch.TargetOf(objects.Open(t, assemble(t, source))), "%s", source)
	}
}

// Tail calls return through the thunk, and not through another function whose name begins so.
func TestReturnThunkAmongOthers(t *testing.T) {
	got := codeRelocs(t, assemble(t, "\t.text\nf:\tjmp __x86_return_thunk_other\ng:\tjmp __x86_return_thunk\nh:\tjmp __dtrace_probe_shop___item\n"))
	expect.Equal(t, []string{
		".text+0x1 R_X86_64_PLT32 __x86_return_thunk_other-4", ".text+0x6 R_X86_64_PLT32 __x86_return_thunk-4", ".text+0xb R_X86_64_PLT32 __x86_return_thunk-4",
	}, got)
}
