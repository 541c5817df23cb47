package input

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/lto"
)

// Object is an ELF file, or a member of an archive that is one. It reads its source, which has to
// be open.
type Object struct {
	*elfreloc.Object
	Machine arch.Machine // nil for one that is not known
	Source  *Source
}

// ErrSkipped is returned for a source that is not an object, holds nothing to convert,
// and is right as it is.
var ErrSkipped = errors.New("nothing to convert")

// explanations say why a file is not for this tool, and what to do.
var explanations = map[FileType]string{
	EmptyFile:       "is empty",
	ArchiveFile:     "is an archive, and not an object or image; take the member out with ar x",
	ThinArchiveFile: "is a thin archive, and not an object or image; give the objects that it names",
	MachOFile:       "is a Mach-O file; only ELF objects can be converted",
	PEFile:          "is a PE file; only ELF objects can be converted",
	COFFFile:        "is a COFF object; only ELF objects can be converted",
	BootFile:        "is a kernel as boot loaders take it; give vmlinux, its ELF file, which is in the package of its debug information",
	CompressedFile:  "is compressed; decompress it first",
	BitcodeFile:     "is LLVM bitcode, and not an object",
	TextFile:        "is text, and not an object",
	UnknownFile:     "is not an ELF object",
}

// Image reads the headers of an ELF file of any type, and rejects others with a reason.
func (s *Source) Image() (*Object, error) {
	typ, err := s.Type()
	if err != nil {
		return nil, err
	}
	if typ != ELFFile {
		return nil, s.explain(typ)
	}
	return s.object()
}

// sourceCode are extensions of files that compilers read.
var sourceCode = []string{".c", ".cc", ".cpp", ".cxx", ".C", ".c++", ".s", ".S", ".d", ".rs", ".go", ".f90", ".adb", ".zig", ".m", ".i", ".ii"}

// explain says why a source is not for this tool.
func (s *Source) explain(typ FileType) error {
	if typ == TextFile && slices.Contains(sourceCode, filepath.Ext(s.Name)) {
		return fmt.Errorf("%s: is source code, and not an object; compile it first", s.Name)
	}
	if typ == TextFile && strings.HasPrefix(string(s.head), "#!") {
		if program := libtoolProgram(s.Name); program != "" {
			return fmt.Errorf("%s: is a script of libtool, which starts %s; give that file", s.Name, program)
		}
		return fmt.Errorf("%s: is a script; give the file of the program that it starts", s.Name)
	}
	return fmt.Errorf("%s: %s", s.Name, explanations[typ])
}

// libtoolProgram returns the program that libtool has built beside a script that starts it, or "".
func libtoolProgram(script string) string {
	directory, name := filepath.Split(script)
	for _, prefix := range []string{"", "lt-"} {
		program := directory + ".libs/" + prefix + name
		if info, err := os.Stat(program); err == nil && info.Mode().IsRegular() {
			return program
		}
	}
	return ""
}

func (s *Source) object() (*Object, error) {
	o, err := elfreloc.Open(s, s.Size, s.Name)
	if err != nil {
		return nil, err
	}
	return &Object{o, machines.Lookup(o.ABI()), s}, nil
}

// ELF reads the headers of an ELF file of any type. Bitcode without any of the texts is ErrSkipped, and so is any other member of an
// archive that is not ELF.
func (s *Source) ELF(stubTexts [][]byte) (*Object, error) {
	typ, err := s.Type()
	switch {
	case err != nil:
		return nil, err
	case typ == ELFFile:
		return s.object()
	case typ == BitcodeFile:
		found, err := s.Mentions(stubTexts)
		if err == nil && found {
			err = lto.Bitcode()
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.Name, err)
		}
		return nil, ErrSkipped
	case s.Member != nil:
		return nil, ErrSkipped
	}
	return nil, s.explain(typ)
}

// Relocatable reads the headers of a relocatable object, and rejects others with a reason.
// An archive may hold anything, so there only what holds probes has to be an object;
// the rest is ErrSkipped.
func (s *Source) Relocatable(stubTexts [][]byte) (*Object, error) {
	o, err := s.ELF(stubTexts)
	if err != nil {
		return nil, err
	}
	return o.relocatable(stubTexts)
}

func (o *Object) relocatable(stubTexts [][]byte) (*Object, error) {
	if o.Source.Member != nil && o.Type != elf.ET_REL {
		if found, err := o.NamesContain(stubTexts); err != nil || !found {
			return nil, ErrSkipped
		}
	}
	if err := checkType(o.Object); err != nil {
		return nil, err
	}
	return o, lto.Check(o.Object, stubTexts)
}

// LTOSymbols returns the symbols of the intermediate code of a source: of an object,
// or of LLVM bitcode, for which o is nil.
func (s *Source) LTOSymbols(o *Object) ([]lto.Symbol, error) {
	if o != nil {
		return lto.Symbols(o.Object)
	}
	if err := s.CheckRead(0, s.Size); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Name, err)
	}
	code := make([]byte, s.Size)
	if err := s.readFull(code); err != nil {
		return nil, err
	}
	symbols, err := lto.BitcodeSymbols(code)
	if err != nil {
		err = fmt.Errorf("%s: %w; compile it with -fno-lto", s.Name, err)
	}
	return symbols, err
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

// Names of FreeBSD's kernel: the variable that tracepoints of its own sys/sdt.h call
// through, and the function that a provider puts into it when the provider is unloaded.
const (
	kernelProbeFunc = "sdt_probe_func"
	kernelProbeStub = "sdt_probe_stub"
)

// HasKernelTracepoints reports whether an object or a module calls FreeBSD's probes as the
// kernel's own header of versions 9 to 14 does, in place of stubs. Providers, which set the
// variable of those calls, do not count, nor does the kernel, which defines it.
func HasKernelTracepoints(o *elfreloc.Object) (bool, error) {
	if found, err := o.NamesContain([][]byte{[]byte(kernelProbeFunc)}); err != nil || !found {
		return false, err
	}
	symbols, err := o.Symbols()
	if err != nil {
		return false, err
	}
	found := false
	for i := range symbols.Len() {
		switch symbols.Name(i) {
		case kernelProbeStub:
			return false, nil
		case kernelProbeFunc:
			found = symbols.At(i).Section == 0
		}
	}
	return found, nil
}
