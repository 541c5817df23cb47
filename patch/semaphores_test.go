package patch_test

import (
	"bytes"
	"debug/elf"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/patch"
)

func withNotes() patch.Options {
	o := defaults()
	o.Stapsdt, o.Names.Guards = true, patch.GuardPrefix
	return o
}

// assemble makes an object for amd64.
func assemble(t *testing.T, text string) []byte {
	t.Helper()
	tools.Need(t, "as")
	source := filepath.Join(t.TempDir(), "a.s")
	disk.Write(t, source, text)
	tools.Must(t, "as", "--64", "-o", source+".o", source)
	return disk.Read(t, source+".o")
}

// convertBytes converts an object; nil is one that stays as it is.
func convertBytes(t *testing.T, data []byte, opts patch.Options) ([]byte, error) {
	t.Helper()
	out, err := patch.Convert(objects.Open(t, data), opts)
	if err != nil || out == nil {
		return nil, err
	}
	result := expect.Value(objects.Assemble(out, data))(t)
	return result, nil
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
				opts.Semaphores = patch.All
			}
			data := expect.Value(convertBytes(t, assemble(t, c.text), opts))(t)
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
			if again, err := convertBytes(t, data, opts); again != nil || err != nil {
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
			data := expect.Value(convertBytes(t, assemble(t, text), withNotes()))(t)
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
	data := assemble(t, guard)
	if out, err := convertBytes(t, data, defaults()); out != nil || err != nil {
		t.Errorf("a guard is changed, %v", err)
	}
	if got := withNotes().Names.StubTexts(); !slices.ContainsFunc(got, func(n []byte) bool { return bytes.Contains(data, n) }) {
		t.Errorf("no needle of %q is in an object that has only a guard", got)
	}
}

func TestSemaphoresThatCannotBe(t *testing.T) {
	const is = `symbol "shop_item_semaphore" would be the semaphore of a probe, and is `
	for name, c := range map[string]struct{ text, want string }{
		"function":       {testCall + "\t.globl shop_item_semaphore\n\t.type shop_item_semaphore,@function\nshop_item_semaphore: ret\n", is + "code"},
		"no type":        {testCall + "\t.globl shop_item_semaphore\nshop_item_semaphore: ret\n", is + "code"},
		"of threads":     {testCall + "\t.section .tbss,\"awT\",@nobits\n\t.globl shop_item_semaphore\n\t.type shop_item_semaphore,@object\nshop_item_semaphore: .zero 2\n", is + "local to threads"},
		"local":          {onlyCall + strings.Replace(theirs, "\t.globl shop_item_semaphore\n", "", 1), is + "local"},
		"absolute":       {testCall + "\t.globl shop_item_semaphore\nshop_item_semaphore = 4\n", is + "absolute"},
		"beside a guard": {guard + theirs, is + `defined beside "__dtrace_semaphore_shop___item"`},
		"local guard":    {strings.Replace(guard, "\t.weak __dtrace_semaphore_shop___item\n\t.hidden __dtrace_semaphore_shop___item\n", "", 1), strings.Replace(is, "shop_item_semaphore", "__dtrace_semaphore_shop___item", 1) + "local"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := convertBytes(t, assemble(t, c.text), withNotes())
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
			data := expect.Value(convertBytes(t, assemble(t, text), first))(t)
			for _, second := range []patch.Options{defaults(), withNotes()} {
				o := objects.Open(t, data)
				_, err := second.CheckEarlier(o, machineOf(o))
				if (err == nil) != (first.Stapsdt == second.Stapsdt) {
					t.Errorf("%s, converted with notes: %v, and again with notes: %v: %v", name, first.Stapsdt, second.Stapsdt, err)
				}
			}
		}
	}
}

func machineOf(o *elfreloc.Object) arch.Machine { return machines.Lookup(o.ABI()) }
