package patch_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// shopPlan plans the conversion of an object that calls the stubs of probes, with notes for DTrace. Another file defines
// probes with arguments of type int, by ID.
func shopPlan(t *testing.T, arguments map[string]int, ids ...string) *patch.Plan {
	t.Helper()
	source := "\t.text\nf:\tnop\n"
	for _, id := range ids {
		source += "\tcall __dtrace_probe_shop___" + id + "\n"
	}
	opts := withNotes()
	opts.DTrace = true
	opts.ProbeSource = integers(arguments)
	return expect.Value(patch.Examine(objects.Open(t, converted.Assemble(t, source+"\tret\n")), opts))(t)
}

// Probes whose arguments DTrace would not read are hidden from it, with the reason.
func TestProbesHiddenFromDTrace(t *testing.T) {
	const unknown = "hidden from DTrace: not all arguments are known; compile with -g"
	const tooMany = "probe shop___many is hidden from DTrace: there are 256 arguments, and there is room for 255"
	for _, c := range []struct {
		arguments map[string]int
		ids       string
		want      []string
	}{
		{map[string]int{"shop___a": 1, "shop___b": 2}, "a b", nil},
		{map[string]int{"shop___a": 1}, "a b", []string{"probe shop___b is " + unknown}},
		{nil, "b a b", []string{"2 probes, one of them shop___b, are " + unknown}},
		{map[string]int{"shop___many": 255}, "many", nil},
		{map[string]int{"shop___many": 256}, "many", []string{tooMany}},
		{map[string]int{"shop___many": 256}, "a many", []string{"probe shop___a is " + unknown, tooMany}},
	} {
		plan := shopPlan(t, c.arguments, strings.Fields(c.ids)...)
		expect.OK(t, plan.Apply(expect.Value(plan.Scan.Object.Edit())(t)))
		var got []string
		for _, warning := range plan.Warnings {
			got = append(got, strings.TrimPrefix(warning.Error(), "a.o: "))
		}
		slices.Sort(got)
		expect.Equal(t, c.want, got, "%q of %v", c.ids, c.arguments)
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
	const cc = "arm-linux-gnueabihf-gcc"
	tools.Need(t, cc)
	file := filepath.Join(t.TempDir(), "a.c")
	disk.Write(t, file, "void __dtrace_probe_shop___new(int, long long), __dtrace_probe_shop___weak(int);\n"+
		"void f(void) { __dtrace_probe_shop___new(1, 2); __dtrace_probe_shop___weak(3); }\n")
	tools.Must(t, cc, "-g", "-O2", "-c", "-o", file+".o", file)
	plan := expect.Value(patch.Examine(objects.Open(t, disk.Read(t, file+".o")), withNotes()))(t)
	got := map[string]string{}
	for stub, text := range expect.Value(plan.OmittedArgs())(t) {
		got[stub.ID] = text
	}
	expect.Equal(t, map[string]string{"shop___new": "argument 2, an integer of 8 bytes, in two registers"}, got)
}

// integers knows probes whose arguments are of type int: how many, by ID.
type integers map[string]int

func (n integers) Probe(id string) (p linkerset.Probe, ok bool, err error) {
	for i := range n[id] {
		p.Args = append(p.Args, linkerset.Argument{Index: i, Native: "int"})
	}
	provider, name, _ := strings.Cut(id, "___")
	p.ID, p.Provider, p.Name = id, provider, name
	return p, n[id] > 0, nil
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
		got, err := converted.Bytes(t, converted.Assemble(t, onlyCall), opts)
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
		o := objects.Open(t, converted.Assemble(t, "\t.text\nf:\n"+source+"\tret\n"))
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
		expect.Equal(t, want, patch.TargetOf(objects.Open(t, converted.Assemble(t, source))), "%s", source)
	}
}

// Tail calls return through the thunk, and not through another function whose name begins so.
func TestReturnThunkAmongOthers(t *testing.T) {
	got := codeRelocs(t, converted.Assemble(t, "\t.text\nf:\tjmp __x86_return_thunk_other\ng:\tjmp __x86_return_thunk\nh:\tjmp __dtrace_probe_shop___item\n"))
	expect.Equal(t, []string{
		".text+0x1 R_X86_64_PLT32 __x86_return_thunk_other-4", ".text+0x6 R_X86_64_PLT32 __x86_return_thunk-4", ".text+0xb R_X86_64_PLT32 __x86_return_thunk-4",
	}, got)
}

func withNotes() patch.Options {
	o := defaults()
	o.Notes = patch.WithNotes
	return o
}

const (
	testCall = "\t.text\n\t.globl f\nf:\n\tcall *__dtrace_isenabled_shop___item@GOTPCREL(%rip)\n\tcall __dtrace_probe_shop___item\n\tret\n"
	onlyCall = "\t.text\n\t.globl f\nf:\n\tcall __dtrace_probe_shop___item\n\tret\n"
	// As guards of sdt.h have it.
	guard = "\t.section .probes,\"awG\",@progbits,__dtrace_semaphore_shop___item,comdat\n\t.balign 4\n" +
		"\t.weak __dtrace_semaphore_shop___item\n\t.hidden __dtrace_semaphore_shop___item\n\t.type __dtrace_semaphore_shop___item,@object\n" +
		"\t.size __dtrace_semaphore_shop___item,2\n__dtrace_semaphore_shop___item: .zero 4\n" +
		"\t.text\n\t.globl g\ng:\n\tcmpw $0, __dtrace_semaphore_shop___item(%rip)\n\tret\n"
	theirs = "\t.section .probes,\"aw\"\n\t.globl shop_item_semaphore\n\t.type shop_item_semaphore,@object\nshop_item_semaphore: .2byte 0\n"
)

var (
	extern = "\t.text\n\tcmpw $0, shop_item_semaphore(%rip)\n"
	// What a conversion leaves, as ld -r brings it into an object.
	earlier = strings.ReplaceAll(strings.ReplaceAll(guard, "__dtrace_semaphore_shop___item", "shop_item_semaphore"), "g:\n", "h:\n")
)

// symbolsOf returns the symbols whose names contain a string, as "name bind visibility
// section", with * for defined ones.
func symbolsOf(t *testing.T, f *elf.File, part string) string {
	t.Helper()
	syms := expect.Value(f.Symbols())(t)
	var all []string
	for _, s := range syms {
		if !strings.Contains(s.Name, part) {
			continue
		}
		where := "undefined"
		if s.Section != elf.SHN_UNDEF {
			where = f.Sections[s.Section].Name
		}
		all = append(all, fmt.Sprint(s.Name, " ", elf.ST_BIND(s.Info), " ", elf.ST_VISIBILITY(s.Other), " ", where))
	}
	slices.Sort(all)
	return strings.Join(all, "\n")
}

func TestSemaphores(t *testing.T) {
	const (
		defined = "shop_item_semaphore STB_WEAK STV_HIDDEN .probes"
		load    = "8b 05 00 00 00 00"
		helper  = "67 e8 00 00 00 00"
	)
	for name, c := range map[string]struct {
		text string
		all  bool
		want string // the symbols
		code string // at the test, "" for none
	}{
		"tested":                    {testCall, false, defined, load},
		"only called":               {onlyCall, false, "shop_item_semaphore STB_WEAK STV_HIDDEN undefined", ""},
		"only called, all":          {onlyCall, true, defined, ""},
		"a guard alone":             {guard, false, defined, ""},
		"a guard and a test":        {testCall + guard, false, defined, load},
		"a guard and a call":        {onlyCall + guard, false, defined, ""},
		"a reference, tested":       {testCall + extern, false, defined, helper},
		"a reference, only called":  {onlyCall + extern, false, "shop_item_semaphore STB_GLOBAL STV_DEFAULT undefined", ""},
		"a reference and a guard":   {testCall + guard + extern, false, defined, helper},
		"SystemTap's, tested":       {testCall + theirs, false, "shop_item_semaphore STB_GLOBAL STV_HIDDEN .probes", helper},
		"SystemTap's, only called":  {onlyCall + theirs, true, "shop_item_semaphore STB_GLOBAL STV_DEFAULT .probes", ""},
		"converted before":          {testCall + earlier, false, defined, helper},
		"converted before, a guard": {testCall + earlier + guard, false, defined, helper},
	} {
		t.Run(name, func(t *testing.T) {
			opts := withNotes()
			if c.all {
				opts.AllSemaphores = true
			}
			data := expect.Value(converted.Bytes(t, converted.Assemble(t, c.text), opts))(t)
			f := disk.ELF(t, data)
			expect.Equal(t, c.want, symbolsOf(t, f, "_semaphore"))
			for _, s := range f.Sections { // loads of 4 bytes that cross no line of the cache
				if c.want == defined && s.Name == ".probes" && s.Addralign != 4 && s.Addralign != 4096 {
					t.Errorf("a semaphore is aligned to %d bytes", s.Addralign)
				}
			}
			code, err := f.Section(".text").Data()
			if err != nil || c.code != "" && fmt.Sprintf("% x", code[:6]) != c.code {
				t.Errorf("got % x, %v, want %s", code, err, c.code)
			}
			if again, err := converted.Bytes(t, data, opts); again != nil || err != nil {
				t.Errorf("converted again it changes: %v", err)
			}
		})
	}
}

// Several definitions of a semaphore in an object are in COMDAT groups of one name, of which
// a linker keeps the first: so that is where the symbol has to be.
func TestSemaphoresOfSeveralGroupsLink(t *testing.T) {
	tools.Need(t, "ld")
	const clash = "__dtrace_semaphore_shop_item___count" // its name is that of shop:item_count
	other := strings.ReplaceAll(strings.ReplaceAll(guard, "__dtrace_semaphore_shop___item", "__dtrace_semaphore_shop___item_count"), "g:\n", "h:\n")
	for name, text := range map[string]string{
		"converted before, a guard": earlier + guard,
		"a guard, converted before": guard + earlier,
		"two probes of one name":    other + strings.ReplaceAll(guard, "__dtrace_semaphore_shop___item", clash),
		"the other way round":       strings.ReplaceAll(guard, "__dtrace_semaphore_shop___item", clash) + other,
	} {
		t.Run(name, func(t *testing.T) {
			data := expect.Value(converted.Bytes(t, converted.Assemble(t, text), withNotes()))(t)
			object := filepath.Join(t.TempDir(), "a.o")
			disk.Write(t, object, data)
			tools.Must(t, "ld", "-shared", "-o", object+".so", object)
			f := disk.OpenELF(t, object+".so")
			if got := symbolsOf(t, f, "_semaphore"); strings.Contains(got, "\n") || !strings.HasSuffix(got, "_semaphore STB_LOCAL STV_DEFAULT .probes") {
				t.Errorf("linked, the semaphore is %s", got)
			}
		})
	}
}

func TestGuardsStayWithoutNotes(t *testing.T) {
	data := converted.Assemble(t, guard)
	if out, err := converted.Bytes(t, data, defaults()); out != nil || err != nil {
		t.Errorf("a guard is changed, %v", err)
	}
	if got := withNotes().StubTexts(); !slices.ContainsFunc(got, func(n []byte) bool { return bytes.Contains(data, n) }) {
		t.Errorf("no needle of %q is in an object that has only a guard", got)
	}
}

func TestSemaphoresThatCannotBe(t *testing.T) {
	const is = `symbol "shop_item_semaphore" would be the semaphore of a probe, and is `
	const local = "local; convert the objects before objcopy makes their symbols local, or link with -B in the ld -r before it"
	for name, c := range map[string]struct{ text, want string }{
		"function":       {testCall + "\t.globl shop_item_semaphore\n\t.type shop_item_semaphore,@function\nshop_item_semaphore: ret\n", is + "code"},
		"no type":        {testCall + "\t.globl shop_item_semaphore\nshop_item_semaphore: ret\n", is + "code"},
		"of threads":     {testCall + "\t.section .tbss,\"awT\",@nobits\n\t.globl shop_item_semaphore\n\t.type shop_item_semaphore,@object\nshop_item_semaphore: .zero 2\n", is + "local to threads"},
		"local":          {onlyCall + strings.Replace(theirs, "\t.globl shop_item_semaphore\n", "", 1), is + local},
		"absolute":       {testCall + "\t.globl shop_item_semaphore\nshop_item_semaphore = 4\n", is + "absolute"},
		"beside a guard": {guard + theirs, is + `defined beside "__dtrace_semaphore_shop___item"`},
		"local guard":    {strings.Replace(guard, "\t.weak __dtrace_semaphore_shop___item\n\t.hidden __dtrace_semaphore_shop___item\n", "", 1), strings.Replace(is, "shop_item_semaphore", "__dtrace_semaphore_shop___item", 1) + local},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := converted.Bytes(t, converted.Assemble(t, c.text), withNotes())
			if out != nil || err == nil || !strings.HasSuffix(err.Error(), ": "+c.want) {
				t.Errorf("got %v, want %s", err, c.want)
			}
		})
	}
}

// An object that has nothing but tests tells how it was converted.
func TestTestsTellWhetherThereAreNotes(t *testing.T) {
	for name, text := range map[string]string{
		"call": "\t.text\nf:\n\tcall __dtrace_isenabled_shop___item\n\tret\n",
		"GOT":  "\t.text\nf:\n\tcall *__dtrace_isenabled_shop___item@GOTPCREL(%rip)\n",
	} {
		for _, first := range []patch.Options{defaults(), withNotes()} {
			data := expect.Value(converted.Bytes(t, converted.Assemble(t, text), first))(t)
			for _, second := range []patch.Options{defaults(), withNotes()} {
				o := objects.Open(t, data)
				_, err := patch.NewScan(o, machineOf(o), second).CheckEarlier()
				if (err == nil) != (first.Notes == second.Notes) {
					t.Errorf("%s, converted with notes: %v, and again with notes: %v: %v", name, first.Notes, second.Notes, err)
				}
			}
		}
	}
}

func machineOf(o *elfreloc.Object) arch.Machine { return machines.Lookup(o.ABI()) }
