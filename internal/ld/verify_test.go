package ld

import (
	"os"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/process"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// An output with an unconverted tracepoint is removed, and the files that hold it are named. Any other stays.
func TestVerify(t *testing.T) {
	enter(t, map[string]string{"a.o": callsStubs, "b.o": otherStubs, "slim.o": slim, "none.o": noProbes})
	regular(t, "r.a", "none.o", "a.o")
	thin(t, "thin.a", "none.o", "a.o")
	const unconverted = "out: holds tracepoints that were not converted (small___call), of "
	for _, test := range []struct {
		name   string
		output string // a file that the linker copies
		inputs string // that were not converted
		err    string // its beginning
	}{
		{name: "no output", inputs: "a.o"},
		{name: "no probes", output: "none.o", inputs: "a.o"},
		{name: "an object", output: "a.o", inputs: "none.o a.o b.o", err: unconverted + "a.o; convert"},
		{name: "a member", output: "a.o", inputs: "r.a", err: unconverted + "r.a(a.o); convert"},
		{name: "a member of a thin archive", output: "a.o", inputs: "thin.a", err: unconverted + "thin.a(a.o); convert"},
		{name: "all of them", output: "a.o", inputs: "r.a thin.a a.o", err: unconverted + "a.o, r.a(a.o), thin.a(a.o); convert"},
		{name: "a file that is gone", output: "a.o", inputs: "gone.o", err: unconverted + "an input that sdtconvert has not seen; convert"},
		{name: "an input that was not seen", output: "a.o", inputs: "b.o", err: unconverted + "an input that sdtconvert has not seen; convert"},
		{name: "many probes", output: "b.o", inputs: "b.o", err: "out: holds tracepoints that were not converted (cxx___before, cxx___caught, cxx___cold, cxx___ctor, cxx___dtor and 5 more), of b.o; convert"},
		{name: "an output that cannot be read", output: "damaged", err: "cannot look for unconverted tracepoints in the output: out: "},
	} {
		disk.Write(t, "damaged", disk.Read(t, "a.o")[:300])
		os.Remove("out")
		o := outputOf(parseLine([]string{"-o", "out"}, false))
		if test.output != "" {
			disk.Write(t, "out", disk.Read(t, test.output))
		}
		err := verify(o, testOptions().Names, testLink("ld").lookInputs(test.inputs))
		if test.err == "" {
			expect.OK(t, err, "%s", test.name)
			_, err := os.Stat("out")
			expect.Equal(t, test.output != "", err == nil, "%s: output", test.name)
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), test.err) {
			t.Errorf("%s: %v, want %s", test.name, err, test.err)
		}
		disk.Absent(t, "out")
	}
}

// lookInputs looks at files by their names, those too that are not there.
func (l *link) lookInputs(names string) (inputs []*inputFile) {
	e := newExaminer(l, parseLine(nil, false))
	for name := range strings.FieldsSeq(names) {
		inputs = append(inputs, e.examine(inputFile{path: name, name: name}))
	}
	return inputs
}

// Only a link that ends with status 0 is verified.
func TestVerified(t *testing.T) {
	enter(t, nil)
	o := outputOf(parseLine(nil, false))
	expect.Equal(t, "a.out", o.path)
	disk.Write(t, "a.out", objects.Read(t, callsStubs))
	l := testLink("ld")
	for _, status := range []process.Status{{Code: 1}, {Signal: os.Kill}} {
		expect.Equal(t, status, expect.Value(l.finishLink(o, status, nil, nil))(t))
	}
	expect.Contains(t, expect.Failure(l.finishLink(o, process.Status{}, os.ErrClosed, nil)), os.ErrClosed.Error())
	expect.Contains(t, expect.Failure(l.finishLink(o, process.Status{}, nil, nil)), "a.out: holds tracepoints")
	disk.Absent(t, "a.out")
}

// What was there before the link is no output of it.
func TestOutputThatStays(t *testing.T) {
	enter(t, map[string]string{"out": callsStubs, "other": callsStubs})
	expect.OK(t, os.Mkdir("directory", 0o777))
	outputOf(parseLine([]string{"-o", "directory"}, false)).removeIfChanged()
	o := outputOf(parseLine([]string{"-o", "out"}, false))
	o.removeIfChanged()
	expect.OK(t, verify(o, testOptions().Names, nil))
	for name, change := range map[string]func() error{
		"another time": func() error { return os.Chtimes("out", time.Time{}, time.Unix(1, 0)) },
		"another size": func() error { return os.Truncate("out", 100) },
		"another file": func() error { return os.Rename("other", "out") },
	} {
		disk.Write(t, "out", objects.Read(t, callsStubs))
		o := outputOf(parseLine([]string{"-o", "out"}, false))
		expect.Equal(t, false, o.hasChanged(), "before %s", name)
		expect.OK(t, change())
		expect.Equal(t, true, o.hasChanged(), "%s", name)
		o.removeIfChanged()
		disk.Absent(t, "out")
	}
	if info, err := os.Stat("directory"); err != nil || !info.IsDir() {
		t.Error("the directory is gone")
	}
}
