package main

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/replace"
	"sdtconvert/patch"
)

// subject is an object that a command works on.
type subject struct {
	*elfreloc.Object
	machine arch.Machine // nil for one that is not known
	in      *replace.Input
}

// errPassedOver is returned for a file that is no object but holds nothing to
// convert either, and is right as it is.
var errPassedOver = errors.New("nothing to convert")

// explanations say why a file is not for this tool, and what to do.
var explanations = map[filetype.Type]string{
	filetype.Empty:       "is empty",
	filetype.Archive:     "is an archive, which is not supported yet; convert its members before ar collects them",
	filetype.ThinArchive: "is a thin archive, which is not supported yet; convert the objects that it names",
	filetype.MachO:       "is a Mach-O file; only ELF objects can be converted",
	filetype.PE:          "is a PE file; only ELF objects can be converted",
	filetype.COFF:        "is a COFF object; only ELF objects can be converted",
	filetype.Bitcode:     "is LLVM bitcode, and not an object",
	filetype.Text:        "is text, and not an object",
	filetype.Unknown:     "is not an ELF object",
}

const adviceLLVM = "convert after code generation: compile with -fno-lto, or link with lld's --lto-obj-path= and convert that object"
const adviceGCC = "convert after code generation: compile with -fno-lto, or run gcc -r -flinker-output=nolto-rel and convert its output"

// recognise tells the type of a file by its first bytes.
func recognise(in *replace.Input) (filetype.Type, error) {
	head := make([]byte, min(in.Info.Size(), filetype.HeadSize))
	if n, err := in.ReadAt(head, 0); n < len(head) {
		if errors.Is(err, io.EOF) {
			err = replace.ErrChanged
		}
		return filetype.Unknown, fmt.Errorf("%s: %w", in.Path, err)
	}
	return filetype.Recognise(head), nil
}

// openSubject reads the headers of a file, and explains what is no relocatable
// object.
func openSubject(in *replace.Input, names patch.Names) (*subject, error) {
	s, err := openELF(in, names)
	if err != nil {
		return nil, err
	}
	if err := checkType(s.Object); err != nil {
		return nil, err
	}
	return s, checkLTO(s.Object, names)
}

// openELF reads the headers of an ELF file of any type.
func openELF(in *replace.Input, names patch.Names) (*subject, error) {
	typ, err := recognise(in)
	if err != nil {
		return nil, err
	}
	size := in.Info.Size()
	switch typ {
	case filetype.ELF:
	case filetype.Bitcode:
		found, err := elfreloc.StreamContains(in, 0, size, names.Needles())
		if err == nil && found {
			err = fmt.Errorf("is LLVM bitcode that holds probes; %s", adviceLLVM)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", in.Path, err)
		}
		return nil, errPassedOver
	default:
		return nil, fmt.Errorf("%s: %s", in.Path, explanations[typ])
	}
	o, err := elfreloc.Open(in, size, in.Path)
	if err != nil {
		return nil, err
	}
	return &subject{o, machines.Lookup(o.Machine, o.Layout.Class), in}, nil
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

// checkLTO refuses objects with probes whose code is still to be generated: the
// linker would generate it, calls and all, after the conversion.
func checkLTO(o *elfreloc.Object, names patch.Names) error {
	checked := false
	for i := range o.Sections {
		name, compiler, advice := o.Sections[i].Name, "", ""
		switch {
		case strings.HasPrefix(name, ".gnu.lto_"):
			compiler, advice = "GCC", adviceGCC
		case name == ".llvm.lto":
			compiler, advice = "LLVM", adviceLLVM
		default:
			continue
		}
		if !checked { // lest the same bytes are read for each of many sections
			if err := o.CheckOverlap(); err != nil {
				return err
			}
			checked = true
		}
		found, err := o.Contains(i, names.Needles())
		if err != nil {
			return err
		}
		if found {
			return o.SectionError(i, fmt.Errorf("is %s link-time optimisation code that holds probes; %s", compiler, advice))
		}
	}
	return nil
}
