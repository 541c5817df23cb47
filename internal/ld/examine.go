package ld

import (
	"debug/elf"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/lto"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// linkInput is a file that a linker may read, and what is in it. Nothing of it changes once it
// was looked at.
type linkInput struct {
	path string // by which this process opens it
	name string // as messages call it
	word string // of the line, "" for none
	typ  filetype.Type
	elf  elf.Type

	kernelTracepoints bool // it was compiled with the header of FreeBSD's kernel

	names  bool         // it mentions stubs or probe objects
	probes bool         // it mentions stubs
	target patch.Target // of the objects with names
	lto    lto.Code
	// generates says that code is generated of it, or of a member, that has probes: its own
	// machine code, if there is any, is converted beside that.
	generates bool
	needs     *probeNeeds  // of what is not converted; else nil
	optional  bool         // the link may leave it out: it is between --start-lib and --end-lib, or a member of a thin archive
	members   []*linkInput // files with probes that a thin archive names
	script    bool         // it is text, which may be a linker script
	// addsLibraries says that lld may link libraries that the source names (#pragma comment(lib)).
	addsLibraries bool
	foreign       bool  // a script that has inputs read in another format than ELF
	err           error // that keeps it from being converted, though it holds probes
}

func (in *linkInput) isArchive() bool {
	return in.typ == filetype.Archive || in.typ == filetype.ThinArchive
}

// converts reports whether the file is one to convert. The members of a thin archive are files of their own.
func (in *linkInput) converts() bool {
	return in.err == nil && in.probes && in.typ != filetype.Bitcode && in.typ != filetype.ThinArchive && (in.lto.Compiler == "" || in.lto.Fat)
}

// examiner finds out what is in files. Several goroutines use it.
type examiner struct {
	options     patch.Options
	stubTexts   [][]byte // without which a file has no stub
	probeTexts  [][]byte // and without which it has to do with no probe
	relocatable bool     // a link that asks for no part
	lld, mold   bool
	fatLTO      map[lto.Compiler]bool // whose fat objects the linker takes the intermediate code of
}

// probeTexts returns the beginnings of the names of stubs and of probe objects.
func probeTexts(o patch.Options) [][]byte { return append(o.Names.StubTexts(), []byte(o.ProbePrefix)) }

// examine finds out whether a file is worth converting. A file that cannot be opened is left to the
// linker, which knows how to complain, unless this process alone lacks what it takes.
func (k *examiner) examine(path, name string) *linkInput {
	in := &linkInput{path: path, name: name}
	f, err := input.Open(path)
	if err != nil {
		if lacksResources(err) {
			in.err = err
		}
		return in
	}
	defer f.Close()
	f.Path = name
	src := f.Source()
	in.typ, _ = src.Type()
	switch in.typ {
	case filetype.ELF:
		in.err = k.object(in, src)
	case filetype.Archive:
		in.err = k.archive(in, f, input.Options{})
	case filetype.ThinArchive:
		f.Path = path // its members are beside it
		in.err = k.archive(in, f, input.Options{FollowThin: true})
	case filetype.Bitcode:
		in.err = k.bitcode(in, src)
	case filetype.Text, filetype.Unknown: // a script may be in any encoding
		in.script = true
		in.foreign, _ = hasForeignTarget(src)
	}
	return in
}

// lacksResources reports whether an error is of this process, and not of the file: the linker may
// open that.
func lacksResources(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// foreignTarget is the command of a linker script that has inputs read in another format than ELF.
var foreignTarget = regexp.MustCompile(`\bTARGET\s*\(\s*"?([^)"\s]*)`)

// hasForeignTarget reports whether a text has that command.
func hasForeignTarget(src *input.Source) (bool, error) {
	if found, err := src.Mentions([][]byte{[]byte("TARGET")}); err != nil || !found || src.Size > maxScript {
		return false, err
	}
	text := make([]byte, src.Size)
	if n, err := src.ReadAt(text, 0); n < len(text) {
		return false, err
	}
	for _, match := range foreignTarget.FindAllSubmatch(text, -1) {
		if name := string(match[1]); name != "default" && !strings.HasPrefix(name, "elf") {
			return true, nil
		}
	}
	return false, nil
}

// maxScript is the length of the longest text that may be a linker script, in bytes.
const maxScript = 16 << 20

// mentions looks for names of stubs only where any name is found.
func (k *examiner) mentions(contain func([][]byte) (bool, error)) (names, probes bool, err error) {
	if names, err = contain(k.probeTexts); err == nil && names {
		probes, err = contain(k.stubTexts)
	}
	return names, probes, err
}

// symbols looks for the names of an object. The name of a stub may be a part of others, as
// it is of the probe object's: only a symbol that has it makes the object one to convert.
func (k *examiner) symbols(o *elfreloc.Object) (names, probes bool, err error) {
	if names, probes, err = k.mentions(o.NamesContain); err == nil && probes {
		probes, err = k.options.Names.HasStub(o)
	}
	return names || k.hasRecords(o), probes, err
}

// hasRecords reports whether an object was converted. Its probe objects may have names with
// another prefix, which the link then refuses.
func (k *examiner) hasRecords(o *elfreloc.Object) bool {
	return slices.ContainsFunc(o.Sections, func(sec elfreloc.Section) bool {
		_, ok := k.options.Layout.IsRecordSection(&sec)
		return ok
	})
}

// bitcode looks at LLVM bitcode.
func (k *examiner) bitcode(in *linkInput, src *input.Source) (err error) {
	in.lto.Compiler, in.addsLibraries = lto.LLVM, k.lld
	if in.names, in.probes, err = k.mentions(src.Mentions); err != nil || !in.names {
		return err
	}
	return k.addLTO(in, src, nil, in.probes)
}

// object looks at the names of an object. What was linked is not looked into.
func (k *examiner) object(in *linkInput, src *input.Source) error {
	if _, typ, ok := src.Ident(); ok && typ == elf.ET_DYN {
		in.elf = typ
		return nil
	}
	err := k.relocatableObject(in, src)
	if err == nil {
		return nil
	}
	// What holds no probe need not be readable.
	if found, _ := src.Mentions(k.stubTexts); !found {
		return nil
	}
	return err
}

func (k *examiner) relocatableObject(in *linkInput, src *input.Source) error {
	o, err := src.Image()
	if err != nil {
		return err
	}
	if in.elf = o.Type; in.elf != elf.ET_REL {
		return nil
	}
	in.addsLibraries = k.lld && addsLibraries(o.Object)
	if in.lto, err = k.ltoCode(o.Object); err != nil {
		return err
	}
	if in.names, in.probes, err = k.symbols(o.Object); err != nil {
		return err
	}
	if in.names {
		in.target = max(in.target, patch.TargetOf(o.Object))
	}
	if k.options.Layout.Format == linkerset.FreeBSD || !k.options.FixedLayout && o.OSABI() == elf.ELFOSABI_FREEBSD {
		if in.kernelTracepoints, err = input.HasKernelTracepoints(o.Object); err != nil {
			return err
		}
	}
	if in.lto.Compiler != "" {
		in.probes = in.probes || in.lto.Probes > 0
		return k.addLTO(in, src, o, in.lto.Probes > 0)
	}
	if in.names && !in.probes {
		in.addObject(k, o)
	}
	return nil
}

// dependentLibraries is the type of the section that names libraries (SHT_LLVM_DEPENDENT_LIBRARIES).
const dependentLibraries elf.SectionType = 0x6fff4c04

// addsLibraries reports whether an object, or its intermediate code, may name libraries.
func addsLibraries(o *elfreloc.Object) bool {
	return slices.ContainsFunc(o.Sections, func(s elfreloc.Section) bool {
		return s.Type == dependentLibraries || s.Name == ".llvm.lto"
	})
}

// addObject adds an object that needs no conversion to the needs of the file.
func (in *linkInput) addObject(k *examiner, o *input.Object) {
	if k.relocatable {
		return
	}
	if in.needs == nil {
		in.needs = newNeeds(k.options)
	}
	in.needs.err = errors.Join(in.needs.err, in.needs.add(k.options, o, &patch.Scan{}))
}

// addLTO takes in a source that the linker, or its plugin, generates code of, perhaps with probes: an
// object, or bitcode, for which o is nil.
func (k *examiner) addLTO(in *linkInput, src *input.Source, o *input.Object, probes bool) error {
	in.generates = in.generates || probes
	if k.relocatable || k.lld {
		return nil
	}
	symbols, err := src.LTOSymbols(o)
	if err != nil {
		return err
	}
	symbols = slices.DeleteFunc(symbols, func(s input.LTOSymbol) bool {
		return !slices.ContainsFunc(k.probeTexts, func(name []byte) bool { return strings.Contains(s.Name, string(name)) })
	})
	if len(symbols) == 0 {
		return nil
	}
	in.names = true
	if in.needs == nil {
		in.needs = newNeeds(k.options)
	}
	return in.needs.addLTO(k.options, src.Name, o, symbols)
}

// ltoCode finds the intermediate code of an object that the linker takes.
func (k *examiner) ltoCode(o *elfreloc.Object) (lto.Code, error) {
	code, err := lto.Find(o, k.stubTexts)
	if code.Fat && err == nil && !k.fatLTO[code.Compiler] {
		return lto.Code{}, nil
	}
	return code, err
}

// archive looks at the members of an archive.
func (k *examiner) archive(in *linkInput, f *input.File, o input.Options) error {
	var memberErrs error
	lib, err := f.Archive(o)
	if err == nil {
		err = lib.Each(func(src *input.Source) error {
			if src.Err() != nil {
				memberErrs = errors.Join(memberErrs, k.nested(src.Err()))
				return nil
			}
			names, probes, err := k.member(in, src)
			in.names, in.probes = in.names || names, in.probes || probes
			if probes && lib.Thin {
				m := k.examine(src.File.Path, src.File.Path)
				m.optional = true
				in.members = append(in.members, m)
			}
			memberErrs = errors.Join(memberErrs, err)
			return nil
		})
	}
	if err == nil || memberErrs != nil {
		return memberErrs
	}
	// A linker may read what this program does not.
	in.names, in.probes, err = k.mentions(f.Source().Mentions)
	return err
}

// nested returns the error of a member of a thin archive that is in another one, if probes may be there: GNU ld and
// gold read it where it was before the other archive was converted. Other errors are the linker's to report.
func (k *examiner) nested(err error) error {
	if e, ok := errors.AsType[*input.NestedError](err); ok && k.examine(e.Path, e.Path).names {
		return err
	}
	return nil
}

// member looks at a member of an archive. If it is no object that can be read, names may be
// anywhere in it.
func (k *examiner) member(in *linkInput, src *input.Source) (names, probes bool, err error) {
	typ, err := src.Type()
	if err != nil {
		return false, false, err
	}
	if typ == filetype.Bitcode {
		in.addsLibraries = k.lld
		if names, probes, err = k.mentions(src.Mentions); err == nil && names {
			err = k.ltoMember(in, src, nil, lto.LLVM, probes)
		}
		return names, probes, err
	}
	o, err := src.Image()
	if err != nil {
		return k.mentions(src.Mentions)
	}
	in.addsLibraries = in.addsLibraries || k.lld && addsLibraries(o.Object)
	code, err := k.ltoCode(o.Object)
	if err != nil {
		return k.mentions(src.Mentions)
	}
	if code.Compiler != "" {
		err := k.ltoMember(in, src, o, code.Compiler, code.Probes > 0)
		return in.names, code.Probes > 0, err
	}
	if o.Type != elf.ET_REL {
		return k.mentions(o.NamesContain)
	}
	if names, probes, err = k.symbols(o.Object); err != nil {
		return k.mentions(src.Mentions)
	}
	if names {
		in.target = max(in.target, patch.TargetOf(o.Object))
	}
	if names && !probes {
		in.addObject(k, o)
	}
	return names, probes, nil
}

// ltoMember takes in a member that code is generated of. lld generates code within a link alone:
// what it takes from an archive in a first run cannot be put into its place. It takes none of GCC's.
func (k *examiner) ltoMember(in *linkInput, src *input.Source, o *input.Object, compiler lto.Compiler, probes bool) error {
	if k.lld && compiler == lto.LLVM && probes {
		return fmt.Errorf("%s: is LLVM link-time optimisation code that holds probes, which lld takes from archives; compile the library with -fno-lto, or give the linker its objects (CMake: an OBJECT library)", src.Name)
	}
	return k.addLTO(in, src, o, probes)
}

func (in *linkInput) isShared() bool { return in.elf == elf.ET_DYN }
func (in *linkInput) isObject() bool { return in.elf == elf.ET_REL }
