package input

import (
	"fmt"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/patch"
)

// Objects for link-time optimisation hold no code: it is generated when they are
// linked, calls of stubs and all, after a conversion. GCC's keep what they have
// instead in sections of their own; clang's are LLVM bitcode, which is no ELF file, or
// have it in a section beside the code (-ffat-lto-objects).

// What to do about such objects: first what the wrapper of a linker does for those of GCC,
// and for bitcode that lld links, then what else there is.
const (
	linkGCC  = "convert in the link, with sdtconvert ld or gcc -B; or "
	linkLLVM = "convert in the link, with sdtconvert ld or clang -fuse-ld=lld -B; or "

	elseGCC  = "compile with -fno-lto, or run gcc -r -flinker-output=nolto-rel and convert its output"
	elseLLVM = "compile with -fno-lto, or link with lld's --lto-obj-path= and convert that object"
)

// LTOError says that a source with probes holds code that is still to be generated.
type LTOError struct{ What string }

func (e *LTOError) Error() string { return e.What }

// CheckLTO refuses objects with probes whose code is still to be generated, with an
// error that is an LTOError.
func CheckLTO(o *elfreloc.Object, names patch.Names) error {
	late, err := FindLateCode(o, names)
	if err != nil || late.Probes == 0 {
		return err
	}
	advice := late.Compiler.Advice() // the wrapper takes no objects of LLVM with both forms of code
	if late.Compiler == GCC {
		advice = linkGCC + elseGCC
	}
	return o.SectionError(late.Probes, &LTOError{fmt.Sprintf("is %s link-time optimisation code that holds probes; %s", late.Compiler, advice)})
}

// Compiler is one that leaves the generation of code to the linker, or "".
type Compiler string

const (
	GCC  Compiler = "GCC"
	LLVM Compiler = "LLVM"
)

// Advice returns what to do about its objects if no wrapper of a linker can convert them.
func (c Compiler) Advice() string {
	if c == LLVM {
		return "convert after code generation: " + elseLLVM
	}
	return "convert after code generation: " + elseGCC
}

// LateCode is code that is still to be generated.
type LateCode struct {
	Compiler Compiler // "" without such code
	Probes   int      // a section with probes in it, 0 for none
}

// FindLateCode finds such code in an object, and looks for names of stubs in it. Beside an error
// it tells whether there is any.
func FindLateCode(o *elfreloc.Object, names patch.Names) (late LateCode, err error) {
	for i := range o.Sections {
		var compiler Compiler
		switch name := o.Sections[i].Name; {
		case strings.HasPrefix(name, ".gnu.lto_"):
			compiler = GCC
		case name == ".llvm.lto":
			compiler = LLVM
		default:
			continue
		}
		first := late.Compiler == ""
		late.Compiler = compiler
		if first { // lest the same bytes are read for each of many sections
			if err := o.CheckOverlap(); err != nil {
				return late, err
			}
		}
		found, err := o.Contains(i, names.Needles())
		if err != nil {
			return late, err
		}
		if found {
			late.Probes = i
			return late, nil
		}
	}
	return late, nil
}
