package main

import (
	"sdtconvert/internal/emit/stubs"
	"sdtconvert/internal/input"
)

// The flags of stubs that no other command has.
var (
	stubsOutputOption = &option{name: "output", letter: "o", value: "OUT", complete: completeFile,
		help: "write to OUT; if it is one of the files, it must be the output of an earlier run, and is skipped",
		manual: `Write to {out}.
If that is one of the files, it must be the output of an earlier run, and is skipped.`}
	stubsAsmOption = &option{name: "asm",
		help:   "write assembly, to standard output if there is no -o",
		manual: `Write assembly for GNU's and clang's assemblers, to standard output if there is no -o.`}
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
		manual:  "stubs",
		options: []*option{stubsOutputOption, stubsAsmOption},
		asConvert: []*option{
			prefixOption, enabledPrefixOption, symbolOption, returnThunkOption, sectionOption, probePrefixOption, followOption,
		},
	}},
	exit: "0 success, 1 something was wrong with a file, and nothing was written, 2 the command line is wrong.",
	run:  (*program).stubs,
}

// stubs writes what a link still needs.
func (p *program) stubs(f *flags, _ []string) (bool, error) {
	if err := f.validateGenerated(); err != nil {
		return false, err
	}
	if f.output == "" && !f.asm {
		return false, usagef("-o is missing: it names the object to write; --asm writes assembly to standard output")
	}
	need := stubs.New(stubs.Options{
		Names: f.patch.Names, ProbePrefix: f.patch.ProbePrefix, Thunk: f.patch.ReturnThunk, Layouts: f.patch.Layout.Candidates(),
	})
	failed := p.eachObject(f, true, func(o *input.Object) error {
		if f.isOutput(o.Source) {
			if generated, err := stubs.IsGenerated(o.Object); err != nil || generated {
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
	return false, p.writeOutput(f, data)
}
