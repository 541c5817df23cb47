package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"sdtconvert/internal/emit"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
)

// The commands stubs and sites make one file of many objects, which they leave alone.

// generatedFlags are their flags.
type generatedFlags struct {
	conversionFlags
	output string
	asm    bool
}

func (f *generatedFlags) bindFlags(s *flagSet) {
	f.conversionFlags.bindFlags(s)
	s.bind("output", &f.output)
	s.bind("asm", &f.asm)
}

// validate checks a command line that was parsed, and completes what it says.
func (f *generatedFlags) validate() (err error) {
	f.files = f.set.Args()
	if err := cmp.Or(f.checkNames(), f.set.checkOutput(f.output), f.parseLayout()); err != nil {
		return err
	}
	f.files, err = input.Distinct(f.files)
	return err
}

// eachObject opens the objects, and perhaps shared libraries, one after the other,
// and reports the errors of all. Files that are neither and hold no probes are passed
// over.
func (p *program) eachObject(f *conversionFlags, shared bool, work func(o *input.Object) error) (failed bool) {
	link := &input.Link{Options: input.Options{FollowThin: f.follow}, StubTexts: f.patch.Names.StubTexts(), Shared: shared}
	for _, file := range f.files {
		link.Each(file, work, func(err error) {
			failed = true
			message.Error(p.Stderr, err)
		})
	}
	return failed
}

// isOutput reports whether a file is what will be written.
func (f *generatedFlags) isOutput(src *input.Source) bool {
	info, err := os.Stat(f.output)
	return f.output != "" && err == nil && os.SameFile(info, src.File.Info)
}

// errIsOutput returns the error for an input that is the output.
func errIsOutput(name string) error {
	return fmt.Errorf("%s: is the output as well, and would be lost", name)
}

// writeOutput writes what was made.
func (p *program) writeOutput(output string, data []byte) error {
	if output == "" {
		_, err := p.Stdout.Write(data)
		return err
	}
	return p.files.New(output, data)
}

// The flags of stubs that no other command has.
var (
	stubsOutputOption = &option{name: "output", letter: "o", value: "OUT", complete: completeFile,
		help: "write to OUT; if it is one of the files, it must be the output of an earlier run, and is skipped"}
	stubsAsmOption = &option{name: "asm",
		help: "write assembly, to standard output if there is no -o"}
)

// stubsCommand writes what a link still needs.
var stubsCommand = &command{
	name: "stubs", synopsis: "stubs -o OUT FILE...", brief: "write what a link of objects lacks: probe objects and stubs",
	usage: []string{"sdtconvert stubs -o OUT [flags] FILE...", "sdtconvert stubs --asm [-o OUT] [flags] FILE..."},
	text: `Writes the object that a link of these objects lacks: a probe object, with its
provider, for each probe that they use and none of them defines, and, for objects
that are linked without conversion, stubs that do nothing, or return 0. All
definitions are weak. Shared libraries among the files are read for what they define.`,
	groups: []group{{
		options: []*option{stubsOutputOption, stubsAsmOption},
		asConvert: []*option{
			prefixOption, enabledPrefixOption, symbolOption, returnThunkOption, sectionOption, probePrefixOption, followOption,
		},
	}},
	exit: "0 success, 1 something was wrong with a file, and nothing was written, 2 the command line is wrong.",
	new:  func() invocation { return &stubsFlags{} },
}

// stubsFlags are the flags of stubs.
type stubsFlags struct{ generatedFlags }

// run writes what a link still needs.
func (f *stubsFlags) run(p *program, _ []string) (bool, error) {
	if err := f.validate(); err != nil {
		return false, err
	}
	if f.output == "" && !f.asm {
		return false, usagef("-o is missing: it names the object to write; --asm writes assembly to standard output")
	}
	need := emit.NewRequirements(emit.RequirementsOptions{
		Options: f.patch,
	})
	failed := p.eachObject(&f.conversionFlags, true, func(o *input.Object) error {
		if f.isOutput(o.Source) {
			if generated, err := emit.IsGenerated(o.Object); err != nil || generated {
				return err
			}
			return errIsOutput(o.Name)
		}
		return need.Add(o.Object, o.Machine)
	})
	if failed {
		return true, nil
	}
	write := need.Object
	if f.asm {
		write = need.Source
	}
	data, err := write()
	if err != nil {
		return false, err
	}
	return false, p.writeOutput(f.output, data)
}

// The flags of sites that no other command has.
var (
	sitesOutputOption = &option{name: "output", letter: "o", value: "OUT", complete: completeFile,
		help: "write to OUT instead of standard output"}
	sitesAsmOption = &option{name: "asm",
		help: "write assembly; there is no other form"}
)

// sitesCommand writes the records of objects as assembly.
var sitesCommand = &command{
	name: "sites", synopsis: "sites --asm FILE...", brief: "write the records of objects as assembly, and leave the objects unchanged",
	usage: []string{"sdtconvert sites --asm [-o OUT] [flags] FILE..."},
	text: `Writes the records that convert would make of these objects as assembly, and
leaves the objects unchanged: for kernels that patch their sites themselves. Give all
objects of a link. A record names its site by a global function of its section
and the distance from there; if that is impossible, the site is refused.`,
	groups: []group{{
		options: []*option{sitesAsmOption, sitesOutputOption},
		asConvert: []*option{
			prefixOption, enabledPrefixOption, symbolOption, layoutOption, sectionOption, probePrefixOption, followOption,
		},
	}},
	exit: "0 success, 1 something was wrong with a file, and nothing was written, 2 the command line is wrong.",
	new:  func() invocation { return &sitesFlags{} },
}

// sitesFlags are the flags of sites.
type sitesFlags struct{ generatedFlags }

// run writes the records of objects as assembly, and leaves the objects unchanged.
func (f *sitesFlags) run(p *program, _ []string) (bool, error) {
	if err := f.validate(); err != nil {
		return false, err
	}
	if !f.asm {
		return false, usagef("sites can only be written as assembly; give --asm")
	}
	list := emit.NewRecordList(f.patch)
	failed := p.eachObject(&f.conversionFlags, false, func(o *input.Object) error {
		if f.isOutput(o.Source) {
			return errIsOutput(o.Name)
		}
		return list.Add(o.Object, o.Machine)
	})
	if failed {
		return true, nil
	}
	data, errs := list.Source()
	if len(errs) > 0 {
		message.Error(p.Stderr, errors.Join(errs...))
		return true, nil
	}
	return false, p.writeOutput(f.output, data)
}
