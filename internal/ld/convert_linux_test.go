package ld

import (
	"cmp"
	"os"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// A file is known by what it is, and not by its path. With probes, it is an object or binary, not both.
func TestDistinctFiles(t *testing.T) {
	enter(t, map[string]string{"a.o": callsStubs, "b.o": noProbes, "sub/c.o": otherStubs})
	expect.OK(t, os.Link("a.o", "link.o"))
	expect.OK(t, os.Symlink("sub/c.o", "symbolic.o"))
	thin(t, "thin.a", "a.o", "sub/c.o")
	const mixed = ": holds probes, and is linked both as an object and as it is (--format=binary); give the linker a copy of it"
	for _, test := range []struct {
		args string
		want string
		err  string
	}{
		// Of a file with probes, the last path counts.
		{args: "a.o ./a.o link.o b.o ./b.o", want: "link.o named, b.o named"},
		{args: "link.o a.o", want: "a.o named"},
		{args: "symbolic.o sub/c.o", want: "sub/c.o named"},
		{args: "--just-symbols=a.o ./a.o", want: "./a.o named"},
		{args: "--just-symbols=a.o", want: "a.o"},
		{args: "-b binary a.o", want: "a.o named binary"},
		{args: "b.o -b binary ./b.o", want: "b.o named"},
		{args: "-b binary b.o -b elf ./b.o", want: "./b.o named"},
		{args: "thin.a", want: "thin.a named, a.o, sub/c.o"},
		{args: "thin.a link.o", want: "thin.a named, link.o named, sub/c.o"},
		{args: "thin.a -b binary thin.a", want: "thin.a named, a.o, sub/c.o"},
		{args: "a.o -b binary link.o", err: "a.o" + mixed},
		{args: "-b binary link.o -b elf a.o", err: "a.o" + mixed},
		{args: "thin.a -b binary link.o symbolic.o", err: "a.o" + mixed + "\nsub/c.o" + mixed},
		{args: "symbolic.o thin.a -b binary sub/c.o a.o", err: "symbolic.o" + mixed + "\na.o" + mixed},
	} {
		s := testLink("ld").lookAt(test.args)
		files, err := s.distinctFiles()
		if test.err != "" {
			expect.Equal(t, test.err, expect.Failure(files, err), "%s", test.args)
			continue
		}
		expect.OK(t, err, "%s", test.args)
		var words []string
		for _, f := range files {
			word := f.path
			if f.isNamed {
				word += " named"
			}
			if f.isData {
				word += " binary"
			}
			words = append(words, word)
		}
		expect.Equal(t, test.want, strings.Join(words, ", "), "%s", test.args)
	}
}

// converted looks at the files of a line, and converts them.
func (l *link) converted(t *testing.T, args string) (conversion, *fileConverter, error) {
	t.Helper()
	s := l.lookAt(args)
	files := expect.Value(s.distinctFiles())(t)
	l.Convert.Patch.Target = s.target()
	c := newFileConverter(l, newExaminer(l, s.line), s.inputs())
	t.Cleanup(c.close)
	made, err := c.convertAll(files)
	return made, c, err
}

// words says what the linker gets for each file, and which probe objects the file lacks.
func (c conversion) words() string {
	var words []string
	for _, f := range c.files {
		word := f.name + ": "
		switch {
		case f.refusal != nil:
			word += "refused"
		case f.isConverted:
			word += "converted"
		default:
			word += "as it is"
		}
		if f.needs != nil {
			word += " lacks " + strings.Join(f.needs.definitions.Objects(), " ")
		}
		words = append(words, word)
	}
	return strings.Join(words, "\n")
}

// Each file is converted, stays as it is, or is refused. A refusal ends the link only for a file that the line
// names.
func TestConvert(t *testing.T) {
	enter(t, map[string]string{
		"a.o": callsStubs, "b.o": noProbes, "lea.o": refused, "opcode.o": alsoRefused, "fat.o": fat, "slim.o": slim, "done.o": callsStubs,
	})
	disk.Write(t, "done.o", convertedObject(t, "done.o"))
	regular(t, "regular.a", "b.o", "a.o", "done.o")
	thin(t, "thin.a", "a.o", "lea.o")
	const small = " lacks sdt_small___call"
	for _, test := range []struct{ args, want, printed string }{
		{args: "a.o b.o", want: "a.o: converted" + small + "\nb.o: as it is"},
		{args: "-r a.o done.o", want: "a.o: converted\ndone.o: as it is"},
		{args: "done.o", want: "done.o: as it is" + small},
		{args: "regular.a", want: "regular.a: converted" + small},
		{args: "-b binary a.o", want: "a.o: as it is"},
		{args: "thin.a", want: "thin.a: as it is lacks sdt_bad___form sdt_bad___good sdt_small___call\na.o: converted" + small + "\nlea.o: refused"},
		{args: "b.o --just-symbols=lea.o", want: "b.o: as it is\nlea.o: refused"},
		{args: "opcode.o a.o lea.o b.o", printed: "opcode.o: .text+0x6\nlea.o: .text+0x8"},
		{args: "lea.o a.o opcode.o", printed: "lea.o: .text+0x8\nopcode.o: .text+0x6"},
	} {
		l := testLink("ld")
		made, _, err := l.converted(t, test.args)
		if test.printed != "" {
			expect.Equal(t, errReported.Error(), expect.Failure(made, err), "%s", test.args)
			var printed []string
			for line := range strings.Lines(l.messages()) {
				words := strings.SplitN(line, ": ", 4)
				printed = append(printed, words[1]+": "+words[2])
			}
			expect.Equal(t, test.printed, strings.Join(printed, "\n"), "%s prints", test.args)
			continue
		}
		expect.OK(t, err, "%s", test.args)
		expect.Equal(t, test.want, made.words(), "%s", test.args)
		expect.Equal(t, "", l.messages(), "%s prints", test.args)
	}
}

// convertedObject returns the bytes of a file that a link converts.
func convertedObject(t *testing.T, name string) []byte {
	t.Helper()
	made, c, err := testLink("ld").converted(t, name)
	expect.OK(t, err)
	fd := expect.Value(c.open(made.files[0]))(t)
	defer closeDescriptor(fd)
	return disk.Read(t, descriptorPath(fd))
}

// Converted bytes that are not held are made again, unless the file has changed meanwhile.
func TestConvertAgain(t *testing.T) {
	enter(t, map[string]string{"a.o": callsStubs})
	held := convertedObject(t, "a.o")
	s := testLink("ld").lookAt("a.o")
	c := newFileConverter(testLink("ld"), newExaminer(testLink("ld"), s.line), nil)
	defer c.close()
	c.maxHeld = 0
	made := expect.Value(c.convertAll(expect.Value(s.distinctFiles())(t)))(t)
	f := made.files[0]
	expect.Equal(t, -1, f.descriptor)
	fd := expect.Value(c.open(f))(t)
	expect.Equal(t, string(held), string(disk.Read(t, descriptorPath(fd))))
	closeDescriptor(fd)
	disk.Write(t, "a.o", objects.Read(t, noProbes))
	expect.Contains(t, expect.Failure(c.open(f)), "a.o: ")
}

// Bitcode tells no machine, so another object does.
func TestMachineOfBitcode(t *testing.T) {
	enter(t, map[string]string{"a.bc": bitcode, "b.o": noProbes})
	l := testLink("ld")
	made, _, err := l.converted(t, "a.bc b.o")
	expect.OK(t, err)
	expect.Equal(t, true, expect.Value(l.lackingDefinitions(withoutData(made.files)))(t).HasMachine())
}

// What all files lack, and whether any is converted, decides how the linker runs.
func TestPlan(t *testing.T) {
	enter(t, map[string]string{
		"a.o": callsStubs, "b.o": noProbes, "lea.o": refused, "defines.o": "existing.amd64-gcc12-define.o", "bsd.o": "calls.amd64-clang19-freebsd.o",
		"slim.o": slim,
	})
	disk.Write(t, "done.o", convertedObject(t, "a.o"))
	disk.Write(t, "bsddone.o", convertedObject(t, "bsd.o"))
	self := expect.Value(os.Executable())(t)
	for _, test := range []struct {
		name, args, linker string
		missesFiles        bool
		change             func(*Options)
		want               string // the arguments of a linker that is supervised
	}{
		{name: "no probes", args: "b.o"},
		{name: "no probes, but more files", args: "b.o", missesFiles: true, want: "b.o SELF"},
		{name: "probes", args: "a.o", want: "a.o SELF"},
		{name: "probes that were converted before", args: "done.o", want: "done.o SELF"},
		{name: "probes that were converted before, to be linked again", args: "-r done.o"},
		{name: "to be linked again", args: "-r a.o", want: "-r a.o"},
		{name: "a flag at the end", args: "a.o -z now --unknown", want: "a.o -z now --unknown -L/dev/null SELF"},
		{name: "binary at the end", args: "a.o -b binary b.o", want: "a.o -b binary b.o --format=default SELF"},
		{name: "binary at the end of gold", linker: "gold", args: "a.o -b binary b.o", want: "a.o -b binary b.o --format=elf SELF"},
		{name: "a refusal of a file that the line does not name", args: "b.o --just-symbols=lea.o", want: "b.o --just-symbols=lea.o"},
		{name: "no stubs", args: "a.o", change: func(o *Options) { o.NoStubs = true }, want: "a.o"},
		{name: "no records", args: "a.o", change: func(o *Options) { o.Convert.Patch.NoRecords = true }, want: "a.o"},
		{name: "FreeBSD", args: "bsd.o", want: "-u __start_set_sdt_instances_set -u __stop_set_sdt_instances_set -u __start_set_sdt_isenabled_set -u __stop_set_sdt_isenabled_set bsd.o SELF"},
		{name: "FreeBSD, converted before", args: "bsddone.o", want: "-u __start_set_sdt_instances_set -u __stop_set_sdt_instances_set -u __start_set_sdt_isenabled_set -u __stop_set_sdt_isenabled_set bsddone.o SELF"},
		{name: "code that a plugin generates", args: "-plugin p slim.o", want: "-plugin p slim.o SELF"},
	} {
		l := testLink(cmp.Or(test.linker, "ld"))
		if test.change != nil {
			test.change(&l.Options)
		}
		made, _, err := l.converted(t, test.args)
		expect.OK(t, err, "%s", test.name)
		args := strings.Fields(test.args)
		p := expect.Value(l.plan(parseLine(args, false), made, test.missesFiles))(t, "%s", test.name)
		expect.Equal(t, test.want != "", p.isSupervised, "%s: supervised", test.name)
		if p.isSupervised {
			got := strings.Join(p.arguments(args, l.linker.family == gnu), " ")
			expect.Equal(t, test.want, strings.ReplaceAll(got, self, "SELF"), "%s", test.name)
		}
	}
}

// Records that do not go together are refused.
func TestRequirementsThatConflict(t *testing.T) {
	enter(t, map[string]string{"a.o": callsStubs, "b.o": otherStubs, "defines.o": otherStubs})
	disk.Write(t, "done.o", convertedObject(t, "a.o"))
	other := testLink("ld")
	other.Convert.Patch.ProbePrefix = "usdt_"
	made, _, err := other.converted(t, "b.o")
	expect.OK(t, err)
	disk.Write(t, "prefix.o", disk.Read(t, descriptorPath(made.files[0].descriptor)))
	regular(t, "prefix.a", "prefix.o")
	const conflict = "prefix.o: the object was converted before with another --probe-object-prefix: its records name usdt_cxx"
	for _, test := range []struct{ args, err, printed string }{
		{args: "a.o done.o"},
		{args: "a.o prefix.o", err: conflict},
		{args: "done.o prefix.o", err: conflict},
		{args: "prefix.o", err: conflict},
		{args: "prefix.a", printed: "warning: prefix.a(prefix.o): the object was converted before with another --probe-object-prefix"},
		{args: "--start-lib prefix.o", printed: "warning: " + conflict},
	} {
		l := testLink("ld")
		made, _, err := l.converted(t, test.args)
		expect.OK(t, err)
		_, err = l.plan(parseLine(strings.Fields(test.args), false), made, false)
		if test.err == "" {
			expect.OK(t, err, "%s", test.args)
		} else {
			expect.Error(t, err, test.err, "%s", test.args)
		}
		expect.Contains(t, l.messages(), test.printed, "%s prints", test.args)
	}
}
