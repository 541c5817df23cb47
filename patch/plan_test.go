package patch_test

import (
	"bytes"
	"debug/elf"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/failing"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

func defaults() patch.Options {
	return patch.Options{Names: patch.DefaultNames(), ProbePrefix: "sdt_"}
}

func planOf(t *testing.T, name string, opts patch.Options) *patch.Plan {
	t.Helper()
	data := objects.Read(t, name)
	o := objects.Open(t, data)
	scan := expect.Value(patch.Find(o, machines.Lookup(o.ABI()), opts.Names))(t)
	return expect.Value(patch.NewPlan(scan, opts))(t)
}

// apply converts an object, and returns what debug/elf sees of it.
func apply(t *testing.T, name string, opts patch.Options) (*elf.File, []string) {
	t.Helper()
	plan := planOf(t, name, opts)
	e := expect.Value(plan.Scan.Object.Edit())(t)
	expect.OK(t, plan.Apply(e))
	f := disk.ELF(t, objects.Save(t, e, objects.Read(t, name)))
	syms := expect.Value(f.Symbols())(t)
	var probes []string
	for _, s := range syms {
		if strings.HasPrefix(s.Name, "sdt_") || strings.HasPrefix(s.Name, "__dtrace_") {
			bind := strings.TrimPrefix(elf.ST_BIND(s.Info).String(), "STB_")
			state := "defined"
			if s.Section == elf.SHN_UNDEF {
				state = "undefined"
			}
			probes = append(probes, strings.Join([]string{s.Name, bind, state, elf.ST_VISIBILITY(s.Other).String()[4:]}, " "))
		}
	}
	return f, probes
}

func TestAPlanWithRefusalsIsNotApplied(t *testing.T) {
	p := planOf(t, "address.arm64-clang19-code.o", defaults())
	e := expect.Value(p.Scan.Object.Edit())(t)
	defer func() {
		if recover() == nil || e.Changed() {
			t.Error("the plan was applied")
		}
	}()
	p.Apply(e)
}

func TestProbeObjectsTakeThePlaceOfStubs(t *testing.T) {
	relative := defaults()
	relative.Layout = linkerset.Layout{Format: linkerset.Relative}
	for _, c := range []struct {
		name, object string
		opts         patch.Options
		want         []string
	}{
		{"of its own name", "large.arm64-gcc12-large.o", defaults(), []string{"sdt_large___call GLOBAL undefined DEFAULT"}},
		{"hidden where records hold distances", "large.arm64-gcc12-large.o", relative, []string{"sdt_large___call GLOBAL undefined HIDDEN"}},
		{"one that the object refers to already", "existing.arm64-gcc12-O2.o", defaults(), []string{
			"sdt_existing___new GLOBAL undefined DEFAULT", "sdt_existing___probe GLOBAL undefined DEFAULT", "sdt_existing___weak WEAK undefined DEFAULT"}},
		{"one that the object defines", "existing.amd64-gcc12-define.o", defaults(), []string{
			"sdt_existing___new GLOBAL undefined DEFAULT", "sdt_existing___probe GLOBAL defined DEFAULT", "sdt_existing___weak WEAK undefined DEFAULT"}},
		{"one that is local", "existing.amd64-clang19-static.o", defaults(), []string{
			"sdt_existing___new GLOBAL undefined DEFAULT", "sdt_existing___probe LOCAL defined DEFAULT", "sdt_existing___weak WEAK undefined DEFAULT"}},
		{"stubs that the object defines stay", "defined.amd64-clang19-O2.o", defaults(), []string{
			"__dtrace_isenabled_defined___global GLOBAL defined DEFAULT", "__dtrace_probe_defined___global GLOBAL defined DEFAULT",
			"__dtrace_probe_defined___weak WEAK defined DEFAULT", "sdt_defined___global GLOBAL undefined DEFAULT",
			"sdt_defined___not GLOBAL undefined DEFAULT", "sdt_defined___weak GLOBAL undefined DEFAULT"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, got := apply(t, c.object, c.opts)
			expect.Equal(t, c.want, sorted(got))
		})
	}
}

func sorted(in []string) []string { return slices.Sorted(slices.Values(in)) }

// Zero Options convert as the default ones, and so do those that only say something else.
func TestZeroOptionsAreTheDefaults(t *testing.T) {
	convert := func(opts patch.Options) []byte {
		t.Helper()
		data := objects.Read(t, "calls.amd64-gcc12-O2.o")
		out, err := patch.Convert(objects.Open(t, data), opts)
		if err != nil || out == nil {
			t.Fatalf("%+v: converted to %v, %v", opts, out, err)
		}
		var converted bytes.Buffer
		expect.OK(t, out.Write(&converted, bytes.NewReader(data)))
		return converted.Bytes()
	}
	want := convert(patch.DefaultOptions())
	if !bytes.Equal(convert(patch.Options{}), want) {
		t.Error("zero options make another object")
	}
	if bytes.Contains(convert(patch.Options{DropRelocations: true}), []byte("__dtrace_")) {
		t.Error("a stub is left")
	}
	if (patch.Names{}).IsStub("__dtrace_probe_x") != patch.DefaultNames().IsStub("__dtrace_probe_x") {
		t.Error("no names are not the default ones")
	}
}

// convertFrom returns what Convert makes of a file, nil where it leaves it as it is.
func convertFrom(in *failing.File, opts patch.Options) (result []byte, warnings int, err error) {
	o, err := elfreloc.Open(in, in.Size(), "a.o")
	if err != nil {
		return nil, 0, err
	}
	plan, err := patch.Examine(o, opts)
	if err != nil {
		return nil, 0, err
	}
	out, err := plan.Save()
	if err != nil || out == nil {
		return nil, 0, err
	}
	result, err = io.ReadAll(io.NewSectionReader(out.Reader(in), 0, out.Size))
	return result, len(plan.Warnings), err
}

// failEachRead converts an object as often as a conversion reads from it, and returns the result.
func failEachRead(t *testing.T, name string, data []byte, opts patch.Options) []byte {
	t.Helper()
	in := failing.New(data, 0)
	want, warnings, refused := convertFrom(in, opts)
	for n := 1; n <= in.Reads; n++ {
		got, warned, err := convertFrom(failing.New(data, n), opts)
		switch {
		case refused == nil && err != nil:
			if !errors.Is(err, failing.Err) {
				t.Errorf("%s: read %d of %d fails, which does not tell it: %v", name, n, in.Reads, err)
			}
		case refused != nil && err == nil:
			t.Errorf("%s: converted, as read %d of %d fails", name, n, in.Reads)
		case warned == warnings && !bytes.Equal(want, got):
			t.Errorf("%s: read %d of %d fails, and nothing tells so", name, n, in.Reads)
		}
	}
	return want
}

// TestEachReadMayFail lets each read of a conversion fail in turn. The conversion fails then, or
// says so in a warning, or does not need what was to be read.
func TestEachReadMayFail(t *testing.T) {
	names := slices.Concat(objects.OfEachMachine, []string{
		"gotload.amd64-gcc12-noplt.o", "large.amd64-gcc12-large.o", "locals.amd64-gcc12-O2.o", "flow.amd64-gcc12-far.o",
		"thunk.amd64-gcc12-tails.o", "returnsites.amd64-gcc12-as.o",
		"mixed.amd64-clang19-lld19.o", "nopsmerged.amd64-gcc12-bfd.o", "localtwice.amd64-gcc12-bfd.o",
	})
	for _, c := range []struct {
		name string
		opts patch.Options
	}{
		{"pairs", patch.Options{}},
		{"notes", patch.Options{Stapsdt: true, DTrace: true, Semaphores: patch.All}},
		{"freebsd", patch.Options{Layout: linkerset.Layout{Format: linkerset.FreeBSD, Name: "mine"}, DropRelocations: true}},
		{"dof", patch.Options{DOF: &patch.DOF{}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, name := range names {
				data := objects.Read(t, name)
				after := failEachRead(t, name, data, c.opts)
				if after != nil {
					failEachRead(t, name+" once more", after, c.opts)
				}
			}
		})
	}
}
