// Package lto recognises objects for link-time optimisation.
//
// They hold intermediate code. The link generates machine code from it, calls of stubs and all, after a
// conversion. GCC's objects have it in sections of their own; clang's are LLVM bitcode, which is no ELF file. Fat
// objects (-ffat-lto-objects) hold machine code too, which links without link-time optimisation take.
package lto

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
)

// What to do about such objects: first what the wrapper of a linker does for those of GCC,
// and for bitcode that lld links, then what else there is.
const (
	linkGCC  = "convert in the link, with sdtconvert ld or gcc -B; or "
	linkLLVM = "convert in the link, with sdtconvert ld or clang -fuse-ld=lld -B; or "

	elseGCC  = "compile with -fno-lto, or run gcc -r -flinker-output=nolto-rel and convert its output"
	elseLLVM = "compile with -fno-lto, or link with lld's --lto-obj-path= and convert that object"
)

// Error says that a source with probes has no machine code yet.
type Error struct {
	What   string
	Link   string // advice to convert in the link; "" in a link
	Advice string // what else to do
}

// Error says what the source is, and what to do.
func (e *Error) Error() string { return e.What + "; " + e.Link + e.Advice }

// Bitcode returns the error of LLVM bitcode that holds probes.
func Bitcode() *Error { return &Error{"is LLVM bitcode that holds probes", linkLLVM, elseLLVM} }

// Check refuses objects with probes that have no machine code yet, with an error that is an *Error. Code has
// probes if one of the texts occurs in it.
func Check(o *elfreloc.Object, stubTexts [][]byte) error {
	code, err := Find(o, stubTexts)
	if err != nil || code.Probes == 0 || code.Fat {
		return err
	}
	refusal := &Error{fmt.Sprintf("is %s link-time optimisation code that holds probes", code.Compiler), linkGCC, elseGCC}
	if code.Compiler == LLVM {
		refusal.Link, refusal.Advice = "", elseLLVM
	}
	return o.SectionError(code.Probes, refusal)
}

// WarnFat returns a warning about the intermediate code of a fat object with probes, or nil: only
// its machine code can be converted before the link.
func WarnFat(o *elfreloc.Object, stubTexts [][]byte) (warning, err error) {
	code, err := Find(o, stubTexts)
	if err != nil || code.Probes == 0 || !code.Fat {
		return nil, err
	}
	return &elfreloc.Error{File: o.Name, Err: errors.New("its intermediate code for link-time optimisation stays unconverted; a link that takes it has to go through sdtconvert ld (-B)")}, nil
}

// Compiler is one that leaves the generation of code to the linker, or "".
type Compiler string

const (
	GCC  Compiler = "GCC"
	LLVM Compiler = "LLVM"
)

// Code is the intermediate code of an object.
type Code struct {
	Compiler Compiler // "" without such code
	Probes   int      // a section with probes in it, 0 for none
	Fat      bool     // the object holds machine code too
}

// Find finds intermediate code in an object, and looks for texts of stubs in it. Beside
// an error it says whether there is any.
func Find(o *elfreloc.Object, stubTexts [][]byte) (code Code, err error) {
	code, err = findIntermediate(o, stubTexts)
	hasCode := func(s elfreloc.Section) bool { return s.Executable() && s.InFile() }
	if err != nil || code.Compiler == "" || !slices.ContainsFunc(o.Sections, hasCode) {
		return code, err
	}
	slim, err := o.NamesContain(slimSymbol)
	code.Fat = err == nil && !slim
	return code, err
}

// slimSymbol is the symbol of objects of GCC that lack machine code. A relocatable link may put
// such an object together with machine code of other objects.
var slimSymbol = [][]byte{[]byte("__gnu_lto_slim")}

func findIntermediate(o *elfreloc.Object, stubTexts [][]byte) (code Code, err error) {
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
		first := code.Compiler == ""
		code.Compiler = compiler
		if first { // lest the same bytes are read for each of many sections
			if err := o.CheckOverlap(); err != nil {
				return code, err
			}
		}
		found, err := o.Contains(i, stubTexts)
		if err != nil {
			return code, err
		}
		if found {
			code.Probes = i
			return code, nil
		}
	}
	return code, nil
}
