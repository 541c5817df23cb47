package dtrace_test

import (
	"bytes"
	"debug/elf"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/dtrace"
	"sdtconvert/internal/testkit/converted"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

var aliases = dtrace.Aliases{Visibility: byte(elf.STV_HIDDEN)}

func forDOF() patch.Options {
	o := aliases.Options()
	o.Names = patch.DefaultNames()
	return o
}

// told returns what DOF is told of an object, without the stubs' symbols.
func told(t *testing.T, data []byte) (sites []dtrace.Site) {
	t.Helper()
	plan, err := patch.Examine(objects.Open(t, data), forDOF())
	if err != nil || len(plan.Refused) > 0 {
		t.Fatal(err, plan.Errors())
	}
	sites = expect.Value(aliases.Sites(plan))(t)
	for i := range sites {
		sites[i].Stub = &patch.Stub{Name: sites[i].Stub.Name, Kind: sites[i].Stub.Kind}
	}
	return sites
}

// An object that was converted for DOF has the same sites again, and stays as it is.
func TestDOFIsFoundAgain(t *testing.T) {
	counts := map[string]int{}
	for _, file := range objects.ELF(t, "calls.") {
		name, data := file.Name, file.Data
		o := objects.Open(t, data)
		m, ok := machines.Lookup(o.ABI()).(arch.DOFMachine)
		out, err := converted.Bytes(t, data, forDOF())
		if !ok {
			if err == nil || !strings.Contains(err.Error(), "DTrace has no form of them for") && !strings.Contains(err.Error(), "is not supported") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil {
			if !strings.Contains(err.Error(), "which dtrace -G has no form for") && !strings.Contains(err.Error(), "is GCC link-time optimisation code") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		before := told(t, data)
		if diff := cmp.Diff(before, told(t, out), cmpopts.IgnoreUnexported(dtrace.Site{})); diff != "" || len(before) == 0 {
			t.Errorf("%s: %d sites, %s", name, len(before), diff)
		}
		if again, err := converted.Bytes(t, out, forDOF()); again != nil || err != nil {
			t.Errorf("%s: converted twice: %v, %v", name, again != nil, err)
		}
		counts[m.Traits().Name]++
		checkAliases(t, name, out, before)
		checkEdits(t, name, out, before)
	}
	t.Log(counts)
	if counts["amd64"] == 0 || counts["arm64"] == 0 {
		t.Errorf("objects were converted: %v", counts)
	}
}

// checkEdits compares the sites that are found as edited with those that DOF is told of, and
// a conversion that is not for DOF leaves them alone.
func checkEdits(t *testing.T, name string, data []byte, sites []dtrace.Site) {
	t.Helper()
	edits, marks, err := dtrace.Edits(objects.Open(t, data))
	if err != nil || len(marks) > 0 {
		t.Errorf("%s: %d marks of no site, %v", name, len(marks), err)
	}
	told := map[string]bool{}
	for _, s := range sites {
		told[s.Stub.Name+" "+s.Function+" "+s.Alias] = true
	}
	found := map[string]bool{}
	for _, e := range edits {
		if e.Alias != "" { // of tests that no kernel arms there is none
			found[e.Stub.Name+" "+e.Function+" "+e.Alias] = true
		}
	}
	for key := range found {
		if !told[key] && !strings.Contains(key, "isenabled") {
			t.Errorf("%s: DOF is not told of %s", name, key)
		}
	}
	for key := range told {
		if !found[key] {
			t.Errorf("%s: %s is not found as edited", name, key)
		}
	}
	if out, err := converted.Bytes(t, data, patch.Options{FixedLayout: true}); out != nil || err != nil {
		t.Errorf("%s: a conversion changes it: %v, %v", name, out != nil, err)
	}
}

// checkAliases compares the aliases with the functions that they stand for.
func checkAliases(t *testing.T, name string, data []byte, sites []dtrace.Site) {
	t.Helper()
	f := disk.ELF(t, data)
	syms := expect.Value(f.Symbols())(t)
	byName := map[string]elf.Symbol{}
	for _, s := range syms {
		byName[s.Name] = s
		if strings.HasPrefix(s.Name, "__dtrace_") && s.Section == elf.SHN_UNDEF && (elf.ST_BIND(s.Info) != elf.STB_WEAK || elf.ST_VISIBILITY(s.Other) != elf.STV_HIDDEN) {
			t.Errorf("%s: %+v", name, s)
		}
	}
	for _, site := range sites {
		alias, function := byName[site.Alias], byName[site.Function]
		if alias.Value != function.Value || alias.Section != function.Section || alias.Size != function.Size ||
			elf.ST_BIND(alias.Info) == elf.STB_LOCAL || elf.ST_VISIBILITY(alias.Other) != elf.STV_HIDDEN || elf.ST_TYPE(alias.Info) != elf.STT_FUNC {
			t.Errorf("%s: %+v stands for %+v", name, alias, function)
		}
		if uint64(site.Offset) >= function.Size {
			t.Errorf("%s: %+v of %d bytes", name, site, function.Size)
		}
	}
}

// A weak function has the same alias in every object, a weak one too; others do not.
func TestDOFAliases(t *testing.T) {
	text := func(bind, body string) string {
		return "\t.text\n\t" + bind + " f\n\t.type f,@function\nf:\n\tcall __dtrace_probe_p___n\n" + body + "\tret\n\t.size f,.-f\n"
	}
	alias := func(source string) (string, elf.SymBind) {
		data := converted.Assemble(t, source)
		out := expect.Value(converted.Bytes(t, data, forDOF()))(t)
		f := disk.ELF(t, out)
		syms, _ := f.Symbols()
		for _, s := range syms {
			if strings.HasPrefix(s.Name, "$dtrace") {
				return s.Name, elf.ST_BIND(s.Info)
			}
		}
		t.Fatal("no alias")
		return "", 0
	}
	one, bind := alias(text(".local", ""))
	two, _ := alias(text(".local", "\tnop\n"))
	if one == two || bind != elf.STB_GLOBAL || !strings.HasSuffix(one, ".f") {
		t.Errorf("%s and %s, %v", one, two, bind)
	}
	if name, bind := alias(text(".weak", "")); name != "$dtrace.f" || bind != elf.STB_WEAK {
		t.Errorf("%s, %v", name, bind)
	}
}

func TestDOFRefusals(t *testing.T) {
	for want, source := range map[string]string{
		`code of no function, which DTrace has no name for; give it a symbol with .type and .size`:                                        "\t.text\n\tcall __dtrace_probe_p___n\n",
		`a mark of code that is not a site of an earlier dtrace -G; compile it again, and if it includes sdt.h, with -DSDT_CALLS`:         "\t.text\n\t.globl f\nf:\n\tnop\n\t.reloc ., R_X86_64_NONE, __dtrace_probe_p___n\n\tnopl 0(%rax,%rax,1)\n\tret\n",
		`a call that is not a direct call or jump, which dtrace -G has no form for; compile without -mcmodel=large, and without -fno-plt`: "\t.text\n\t.globl f\nf:\n\tmovabs $__dtrace_probe_p___n, %rax\n\tcall *%rax\n\tret\n",
	} {
		data := converted.Assemble(t, source)
		if out, err := converted.Bytes(t, data, forDOF()); out != nil || err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// FuzzDOF converts objects: there is an error or a plan, and what is converted once is told
// of again as it was, and stays.
func FuzzDOF(f *testing.F) {
	for _, file := range objects.Committed(f, 8<<10) {
		f.Add(file.Data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := elfreloc.Open(bytes.NewReader(data), int64(len(data)), "a.o")
		if err != nil {
			return
		}
		plan, err := patch.Examine(o, forDOF())
		if (plan == nil) != (err != nil) {
			t.Fatal(plan, err)
		}
		if err != nil || len(plan.Refused) > 0 {
			return
		}
		before, err := aliases.Sites(plan)
		if err != nil {
			return
		}
		out, err := plan.Output()
		if err != nil || out == nil {
			return
		}
		data, err = objects.Assemble(out, data)
		if err != nil {
			return // the file is not what its headers say
		}
		again := objects.Open(t, data)
		if edits, marks, err := dtrace.Edits(again); err == nil && len(marks) == 0 && len(edits) < len(before) {
			t.Fatalf("%d sites are found as edited, of %d", len(edits), len(before))
		}
		plan, err = patch.Examine(again, forDOF())
		if err != nil || len(plan.Refused) > 0 {
			t.Fatal(err, plan.Errors())
		}
		after, err := aliases.Sites(plan)
		if err != nil || len(after) != len(before) {
			t.Fatalf("%d sites, and %d before, %v", len(after), len(before), err)
		}
		for i := range after {
			if a, b := after[i], before[i]; a.Function != b.Function || a.Offset != b.Offset || a.Alias != b.Alias || a.Stub.Name != b.Stub.Name {
				t.Errorf("%+v, and %+v before", a, b)
			}
		}
		if out, err := plan.Output(); out != nil || err != nil {
			t.Errorf("converted twice: %v, %v", out != nil, err)
		}
	})
}
