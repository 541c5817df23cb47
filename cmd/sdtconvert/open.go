package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"strings"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/filetype"
	"sdtconvert/patch"
)

// subject is an object that a command works on.
type subject struct {
	*elfreloc.Object
	machine arch.Machine // nil for one that is not known
	src     *source
}

// errPassedOver is returned for a file that is no object but holds nothing to
// convert either, and is right as it is.
var errPassedOver = errors.New("nothing to convert")

// explanations say why a file is not for this tool, and what to do.
var explanations = map[filetype.Type]string{
	filetype.Empty:       "is empty",
	filetype.Archive:     "is an archive, and not an object or image; take the member out with ar x",
	filetype.ThinArchive: "is a thin archive, and not an object or image; give the objects that it names",
	filetype.MachO:       "is a Mach-O file; only ELF objects can be converted",
	filetype.PE:          "is a PE file; only ELF objects can be converted",
	filetype.COFF:        "is a COFF object; only ELF objects can be converted",
	filetype.Bitcode:     "is LLVM bitcode, and not an object",
	filetype.Text:        "is text, and not an object",
	filetype.Unknown:     "is not an ELF object",
}

const adviceLLVM = "convert after code generation: compile with -fno-lto, or link with lld's --lto-obj-path= and convert that object"
const adviceGCC = "convert after code generation: compile with -fno-lto, or run gcc -r -flinker-output=nolto-rel and convert its output"

// openSubject reads the headers of a source, and explains what is no relocatable
// object. An archive may hold anything, so there only what holds probes has to be
// an object.
func openSubject(src *source, names patch.Names) (*subject, error) {
	s, err := openELF(src, names)
	if err != nil {
		return nil, err
	}
	if src.member != nil && s.Type != elf.ET_REL {
		if found, err := s.NamesContain(names.Needles()); err != nil || !found {
			return nil, errPassedOver
		}
	}
	if err := checkType(s.Object); err != nil {
		return nil, err
	}
	return s, checkLTO(s.Object, names)
}

// spareObjects are those that nobody uses any more.
var spareObjects = sync.Pool{New: func() any { return new(elfreloc.Object) }}

// openELF reads the headers of an ELF file of any type.
func openELF(src *source, names patch.Names) (*subject, error) {
	typ, err := src.recognise()
	switch {
	case err != nil:
		return nil, err
	case typ == filetype.ELF:
		o, err := spareObjects.Get().(*elfreloc.Object).Reopen(src, src.size, src.name)
		if err != nil {
			return nil, err
		}
		return &subject{o, machines.Lookup(o.ABI()), src}, nil
	case typ == filetype.Bitcode:
		found, err := elfreloc.StreamContains(src, 0, src.size, names.Needles())
		if err == nil && found {
			err = &ltoError{"is LLVM bitcode that holds probes; " + adviceLLVM}
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", src.name, err)
		}
		return nil, errPassedOver
	case src.member != nil:
		return nil, errPassedOver
	}
	return nil, fmt.Errorf("%s: %s", src.name, explanations[typ])
}

func checkType(o *elfreloc.Object) error {
	switch o.Type {
	case elf.ET_REL:
		return nil
	case elf.ET_EXEC:
		return fmt.Errorf("%s: is a linked executable; convert its objects before they are linked", o.Name)
	case elf.ET_DYN:
		return fmt.Errorf("%s: is a linked shared object or executable; convert its objects before they are linked", o.Name)
	case elf.ET_CORE:
		return fmt.Errorf("%s: is a core file, and not an object", o.Name)
	}
	return fmt.Errorf("%s: is an ELF file of unknown type %d, and not a relocatable object", o.Name, o.Type)
}

// ltoError says that a file with probes holds code that is still to be generated.
type ltoError struct{ what string }

func (e *ltoError) Error() string { return e.what }

// checkLTO refuses objects with probes whose code is still to be generated: the
// linker would generate it, calls and all, after the conversion.
func checkLTO(o *elfreloc.Object, names patch.Names) error {
	late, err := findLTO(o, names)
	if err != nil || late.probes == 0 {
		return err
	}
	advice := adviceGCC
	if late.compiler == compilerLLVM {
		advice = adviceLLVM
	}
	return o.SectionError(late.probes, &ltoError{fmt.Sprintf("is %s link-time optimisation code that holds probes; %s", late.compiler, advice)})
}

// The compilers that leave the generation of code to the linker.
const (
	compilerGCC  = "GCC"
	compilerLLVM = "LLVM"
)

// lateCode is code that is still to be generated.
type lateCode struct {
	compiler string // "" where there is no such code
	probes   int    // a section with probes in it, 0 for none
}

func findLTO(o *elfreloc.Object, names patch.Names) (late lateCode, err error) {
	for i := range o.Sections {
		compiler := ""
		switch name := o.Sections[i].Name; {
		case strings.HasPrefix(name, ".gnu.lto_"):
			compiler = compilerGCC
		case name == ".llvm.lto":
			compiler = compilerLLVM
		default:
			continue
		}
		if late.compiler == "" { // lest the same bytes are read for each of many sections
			if err := o.CheckOverlap(); err != nil {
				return late, err
			}
		}
		late.compiler = compiler
		found, err := o.Contains(i, names.Needles())
		if err != nil {
			return late, err
		}
		if found {
			late.probes = i
			return late, nil
		}
	}
	return late, nil
}
