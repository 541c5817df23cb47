package ld

import (
	"debug/elf"
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/replace"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/patch"
)

// Records of earlier conversions go together if they are alike, and nothing else has records.
func TestAgreement(t *testing.T) {
	layout := func(file, text string) error { return &elfreloc.Error{File: file, Err: errors.New(text)} }
	prefix := func(symbol string) error { return &patch.PrefixError{Symbol: symbol} }
	broken := errors.New("cannot be read")
	for _, test := range []struct {
		name     string
		needs    []*probeNeeds
		converts bool
		want     int // errors
	}{
		{name: "nothing"},
		{name: "alike", needs: []*probeNeeds{{conflicts: []error{layout("a.o", "relative")}}, {conflicts: []error{layout("b.o", "relative")}}}},
		{name: "beside what is converted", converts: true, needs: []*probeNeeds{{conflicts: []error{layout("a.o", "relative")}}}, want: 1},
		{name: "beside records of this conversion", needs: []*probeNeeds{{conflicts: []error{layout("a.o", "relative")}}, {hasRecords: true}}, want: 1},
		{name: "of two kinds", needs: []*probeNeeds{{conflicts: []error{layout("a.o", "relative")}}, {conflicts: []error{layout("b.o", "freebsd")}}}, want: 2},
		{name: "one prefix", needs: []*probeNeeds{{conflicts: []error{prefix("x_a")}}, {conflicts: []error{prefix("x_b")}}}},
		{name: "a prefix and a layout", needs: []*probeNeeds{{conflicts: []error{prefix("x_a"), layout("b.o", "relative")}}}, want: 2},
		{name: "errors of another kind", needs: []*probeNeeds{{conflicts: []error{os.ErrClosed, os.ErrClosed}}}},
		{name: "a file that cannot be read", needs: []*probeNeeds{{err: broken}, {conflicts: []error{layout("a.o", "relative")}}}, want: 1},
	} {
		got := 0
		if err := checkAgreement(test.needs, test.converts); err != nil {
			got = len(strings.Split(err.Error(), "\n"))
		}
		expect.Equal(t, test.want, got, "%s", test.name)
	}
}

// One warning is of all objects whose tracepoints call the kernel's own function.
func TestWarningOfKernelTracepoints(t *testing.T) {
	of := func(name string, has bool) *inputFile {
		in := &inputFile{name: name}
		in.hasKernelTracepoints = has
		return in
	}
	for _, test := range []struct {
		inputs []*inputFile
		want   string
	}{
		{want: ""},
		{inputs: []*inputFile{of("a.o", false)}, want: ""},
		{inputs: []*inputFile{of("a.o", false), of("b.o", true)}, want: "sdtconvert: warning: b.o: compiled with"},
		{inputs: []*inputFile{of("a.o", true), of("b.o", true), of("c.o", false), of("d.o", true)}, want: "sdtconvert: warning: a.o and 2 more: compiled with"},
	} {
		l := testLink("ld")
		l.warnOfKernelTracepoints(test.inputs)
		if got := l.messages(); (got == "") != (test.want == "") || !strings.HasPrefix(got, test.want) {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
}

// An error of this process keeps a file from being converted. Any other is the linker's to report.
func TestErrorsOfTheProcess(t *testing.T) {
	for err, want := range map[error]bool{
		syscall.EMFILE: true, syscall.ENFILE: true, syscall.ENOMEM: true, syscall.ENOENT: false, syscall.EACCES: false,
	} {
		expect.Equal(t, want, lacksResources(&os.PathError{Op: "open", Path: "a.o", Err: err}), "%v", err)
	}
	t.Chdir(t.TempDir())
	in := newExaminer(testLink("ld"), testLink("ld").lookAt("").line).examine(inputFile{path: "none.o", name: "none.o"})
	expect.Equal(t, true, in.err == nil && !in.mayHoldProbes())
}

// A dependency file names the program in the place of an object that is removed.
func TestRenameDependency(t *testing.T) {
	t.Chdir(t.TempDir())
	self := expect.Value(os.Executable())(t)
	disk.Write(t, "d", "out: a.o /tmp/x.o\n\n/tmp/x.o:\n")
	s := testLink("ld").lookAt("-o out --dependency-file=gone --dependency-file=d")
	expect.OK(t, renameDependency(s.line, "/tmp/x.o", new(replace.Writer)))
	expect.Equal(t, "out: a.o "+self+"\n\n"+self+":\n", string(disk.Read(t, "d")))
	disk.Absent(t, "gone")
}

func TestFamilyOfLinker(t *testing.T) {
	for name, want := range map[string]family{"ld": gnu, "x86_64-linux-gnu-ld.bfd": gnu, "ld.gold": gold, "x86_64-linux-gnu-ld.lld": lld, "mold": mold} {
		expect.Equal(t, want, familyOf(name), "%s", name)
	}
}

// Shared libraries count as what they define, and are read by the linker as they are.
func TestServedSharedLibrary(t *testing.T) {
	shared := served("libx.so", func(f *servedFile) { f.elfType = elf.ET_DYN })
	c := conversion{}.withFiles(shared, served("a.o", nil))
	inputs := c.unconverted()
	if len(inputs) != 1 || inputs[0].name != "a.o" {
		t.Errorf("unconverted: %v", inputs)
	}
}

// The intermediate code of an archive and its other members are read apart.
func TestMergeNeeds(t *testing.T) {
	o := patch.Options{}
	code, generated := newNeeds(o), newNeeds(o)
	code.hasRecords, code.kinds[arch.Enabled] = true, true
	generated.ltoDefinitions, generated.err = map[string]bool{"sdt_a": true}, os.ErrClosed
	for _, merged := range []*probeNeeds{mergeNeeds(o, code, generated), mergeNeeds(o, generated, code)} {
		expect.Equal(t, map[string]bool{"sdt_a": true}, merged.ltoDefinitions)
		expect.Equal(t, true, merged.hasRecords && merged.kinds[arch.Enabled] && !merged.kinds[arch.Probe])
		expect.Error(t, merged.err, os.ErrClosed.Error())
	}
}
