package main

import (
	"errors"

	"sdtconvert/internal/emit/records"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
)

// The flags of sites that no other command has.
var (
	sitesOutputOption = &option{name: "output", letter: "o", value: "OUT", complete: completeFile,
		help:   "write to OUT instead of standard output",
		manual: `Write to {out} instead of standard output.`}
	sitesAsmOption = &option{name: "asm",
		help: "write assembly; there is no other form",
		manual: `Write assembly.
There is no other form.`}
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
		manual:  "sites",
		options: []*option{sitesAsmOption, sitesOutputOption},
		asConvert: []*option{
			prefixOption, enabledPrefixOption, symbolOption, layoutOption, sectionOption, probePrefixOption, followOption,
		},
	}},
	exit: "0 success, 1 something was wrong with a file, and nothing was written, 2 the command line is wrong.",
	run:  (*program).sites,
}

// sites writes the records of objects as assembly, and leaves the objects unchanged.
func (p *program) sites(f *flags, _ []string) (bool, error) {
	if err := f.validateGenerated(); err != nil {
		return false, err
	}
	if !f.asm {
		return false, usagef("sites can only be written as assembly; give --asm")
	}
	list := records.New(f.patch)
	failed := p.eachObject(f, false, func(o *input.Object) error {
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
	return false, p.writeOutput(f, data)
}
