package ld

import (
	"fmt"
	"os"

	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
)

// choice is what becomes of the inputs that hold probes.
type choice struct {
	convert []*linkInput
	late    []*linkInput // whose code has to be generated first
	by      generator    // of that
}

// generator is what generates the code of objects for link-time optimisation.
type generator uint8

const (
	byGCC generator = iota // GCC's plugin, in a link of its own
	byLLD                  // lld, in the whole link
)

func (g generator) compiler() input.Compiler {
	if g == byLLD {
		return input.LLVM
	}
	return input.GCC
}

// chooser is what the choice depends on beside the inputs.
type chooser struct {
	*line.Line
	inPlace    bool
	linker     linker
	gcc        bool // GCC's driver says what its plugin wants to know
	unanchored bool // --drop-relocations: nothing keeps records together with their code
}

// choose decides what becomes of the inputs, or why the link cannot be.
func choose(c chooser, inputs scanned) (choice, []error) {
	chosen, errs := c.inputs(inputs.inputs)
	if len(chosen.convert)+len(chosen.late) > 0 {
		errs = append(errs, c.droppedCode()...)
	}
	if len(errs) > 0 || len(chosen.late) == 0 {
		return chosen, errs
	}
	chosen.by, errs = c.generator(chosen.late)
	return chosen, append(errs, c.lazy(inputs.byArg)...)
}

// inputs sorts the inputs that hold probes.
func (c chooser) inputs(inputs []*linkInput) (chosen choice, errs []error) {
	written, _ := os.Stat(c.InDirectory(output(c.Line))) // nil if there is no output yet
	for _, in := range inputs {
		switch {
		case in.err != nil:
			errs = append(errs, in.err)
		case !in.probes:
		case in.late.Compiler != "":
			chosen.late = append(chosen.late, in)
		case c.inPlace:
			chosen.convert = append(chosen.convert, in)
		case written != nil && os.SameFile(in.info, written):
			errs = append(errs, fmt.Errorf("%s: is the output too; name another", in.path))
		default:
			chosen.convert = append(chosen.convert, in)
		}
	}
	return chosen, errs
}

// droppedCode refuses what makes a linker drop records of code that it keeps, or fold functions
// that differ only in their probes.
func (c chooser) droppedCode() (errs []error) {
	if !c.unanchored || c.Relocatable {
		return nil
	}
	collects, folds := false, false
	for _, a := range c.Args {
		switch a.Name {
		case "gc-sections", "no-gc-sections":
			collects = a.Name == "gc-sections"
		case "icf", "no-icf":
			folds = a.Name == "icf" && a.Value != "none"
		}
	}
	const refused = "--drop-relocations: --%s would lose sites, as nothing keeps them together with their code; leave out one of the two"
	if collects {
		errs = append(errs, fmt.Errorf(refused, "gc-sections"))
	}
	if folds {
		errs = append(errs, fmt.Errorf(refused, "icf"))
	}
	return errs
}

// generator returns what generates code, if anything can.
func (c chooser) generator(late []*linkInput) (by generator, errs []error) {
	plugin := c.gcc && hasPlugin(c.Line) && !c.linker.is("lld") && !c.linker.is("mold")
	for _, in := range late {
		switch {
		case in.script != "":
			errs = append(errs, fmt.Errorf("%s: names %s, which is link-time optimisation code that holds probes; compile it with -fno-lto", in.script, in.path))
		case in.late.Compiler == input.LLVM && in.typ == filetype.Bitcode && c.linker.is("lld"):
			by = byLLD
		case in.late.Compiler == input.GCC && plugin:
		case in.late.Compiler == input.LLVM && in.late.Fat:
			errs = append(errs, fmt.Errorf("%s: is a fat object whose intermediate code holds probes, which this link takes; compile or link it without -ffat-lto-objects", in.path))
		default:
			errs = append(errs, fmt.Errorf("%s: is %s link-time optimisation code that holds probes, and this linker does not generate it for others; %s",
				in.path, in.late.Compiler, in.late.Compiler.Advice()))
		}
	}
	return by, errs
}

// lazy refuses code that is generated only if it is needed.
func (c chooser) lazy(byArg map[int]*linkInput) (errs []error) {
	for i := range c.Args {
		if in := byArg[i]; in != nil && in.probes && in.late.Compiler != "" && c.Args[i].Lazy {
			errs = append(errs, fmt.Errorf("%s: is link-time optimisation code that holds probes, between --start-lib and --end-lib; compile it with -fno-lto", in.path))
		}
	}
	return errs
}
