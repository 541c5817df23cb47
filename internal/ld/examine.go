package ld

import (
	"debug/elf"
	"errors"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/lto"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// inputFile is a file that a linker may read, and what it holds. It does not change after the look.
type inputFile struct {
	path       string // by which this process opens it
	name       string // in messages
	argument   string // that leads to it on the command line, or ""
	isNamed    bool   // the line names the file itself, so that the linker surely reads it
	isData     bool   // the linker links its bytes as data (--format=binary), and nothing looks at them
	isOptional bool   // the link may leave it out: between --start-lib and --end-lib, or a member of a thin archive
	contents
}

// contents are what a look at a file tells.
type contents struct {
	format  input.FileType
	elfType elf.Type     // of an ELF file
	members []*inputFile // files with probes that a thin archive names

	isScript         bool // it is text, which may be a linker script
	addsLibraries    bool // lld may link libraries that its source names (#pragma comment(lib))
	hasForeignTarget bool // it is a script whose TARGET has inputs read in another format than ELF

	probeUse
	err error // keeps the file from being converted, though it holds probes
}

// probeUse is what a file has to do with probes.
type probeUse struct {
	namesProbes bool         // it names stubs or probe objects
	callsStubs  bool         // it names stubs or semaphores of guards, or symbols of it were made local, which a conversion changes
	target      patch.Target // of the objects that name probes

	lto lto.Code
	// generatesProbes says that code is generated of the file, or of a member, and has probes: its own
	// machine code, if there is any, is converted beside that.
	generatesProbes bool

	hasUnlinkedNotes     bool        // of a compiler, which ld -r does not take beside others
	hasKernelTracepoints bool        // it was compiled with the header of FreeBSD's kernel
	needs                *probeNeeds // of its objects that need no conversion, or nil
}

func (c *contents) isArchive() bool {
	return c.format == input.ArchiveFile || c.format == input.ThinArchiveFile
}

func (c *contents) isShared() bool { return c.elfType == elf.ET_DYN }
func (c *contents) isObject() bool { return c.elfType == elf.ET_REL }

// isConvertible reports whether the bytes of the file are to be converted. The members of a thin archive are
// files of their own.
func (c *contents) isConvertible() bool {
	return c.err == nil && c.callsStubs && c.format != input.BitcodeFile && c.format != input.ThinArchiveFile && (c.lto.Compiler == "" || c.lto.Fat)
}

// mayHoldProbes reports whether the file has probes, or may have them and cannot be converted.
func (c *contents) mayHoldProbes() bool { return c.callsStubs || c.generatesProbes || c.err != nil }

// lldGeneratesCode reports whether lld generates code of the file.
func (c *contents) lldGeneratesCode() bool {
	return c.lto.Compiler == lto.LLVM && (c.format == input.BitcodeFile || c.isObject())
}

// examiner finds out what files hold. Several goroutines use it.
type examiner struct {
	options       patch.Options
	stubTexts     [][]byte // a file without any of these names no stub
	probeTexts    [][]byte // a file without any of these names neither a stub nor a probe object
	isRelocatable bool     // -r: the output is linked again
	linker        family
	fatLTO        map[lto.Compiler]bool // the linker takes intermediate code of this compiler's fat objects
}

// newExaminer returns the examiner of a command line.
func newExaminer(l *link, ln *commandLine) *examiner {
	hasFlag := func(name string) bool {
		return slices.ContainsFunc(ln.args, func(a lineArg) bool { return a.name == name })
	}
	plugin := hasFlag("plugin") && l.linker.family != lld // which ignores it
	return &examiner{
		options: l.Convert.Patch, stubTexts: l.Convert.Patch.StubTexts(), probeTexts: probeTexts(l.Convert.Patch),
		isRelocatable: ln.relocatable, linker: l.linker.family,
		fatLTO: map[lto.Compiler]bool{lto.GCC: plugin, lto.LLVM: plugin || hasFlag("fat-lto-objects")},
	}
}

// probeTexts returns the beginnings of the names of stubs and of probe objects.
func probeTexts(o patch.Options) [][]byte { return append(o.StubTexts(), []byte(o.ProbePrefix)) }

// examine adds the contents of a file that is not linked as data. A file that cannot be opened is left to the linker, which
// reports it, unless this process alone lacks what it takes.
func (e *examiner) examine(file inputFile) *inputFile {
	in := &file
	if in.isData {
		return in
	}
	f, err := input.Open(in.path)
	if err != nil {
		if lacksResources(err) {
			in.err = err
		}
		return in
	}
	defer f.Close()
	f.Path = in.name
	src := f.Source()
	in.format, _ = src.Type()
	switch in.format {
	case input.ELFFile:
		in.err = e.object(&in.contents, src)
	case input.ArchiveFile:
		in.err = e.archive(&in.contents, f, input.Options{})
	case input.ThinArchiveFile:
		f.Path = in.path // its members are beside it
		in.err = e.archive(&in.contents, f, input.Options{FollowThin: true})
	case input.BitcodeFile:
		in.err = e.bitcode(&in.contents, src)
	case input.TextFile, input.UnknownFile: // a script may be in any encoding
		in.isScript = true
		in.hasForeignTarget, _ = hasForeignTarget(src)
	}
	return in
}

// lacksResources reports whether an error is of this process, and not of the file: the linker may
// open that.
func lacksResources(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) || errors.Is(err, syscall.ENOMEM)
}

// foreignTarget is the command of a linker script that has inputs read in another format than ELF.
var foreignTarget = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\bTARGET\s*\(\s*"?([^)"\s]*)`) })

// hasForeignTarget reports whether a text has a TARGET of another format than ELF.
func hasForeignTarget(src *input.Source) (bool, error) {
	if mentioned, err := src.Mentions([][]byte{[]byte("TARGET")}); err != nil || !mentioned || src.Size > maxScript {
		return false, err
	}
	text := make([]byte, src.Size)
	if n, err := src.ReadAt(text, 0); n < len(text) {
		return false, err
	}
	for _, match := range foreignTarget().FindAllSubmatch(text, -1) {
		if name := string(match[1]); name != "default" && !strings.HasPrefix(name, "elf") {
			return true, nil
		}
	}
	return false, nil
}

// maxScript is the length of the longest text that may be a linker script, in bytes.
const maxScript = 16 << 20

// mentions looks for names of stubs and probe objects, and, where there is one, for names of stubs.
func (e *examiner) mentions(contain func([][]byte) (bool, error)) (namesProbes, callsStubs bool, err error) {
	if namesProbes, err = contain(e.probeTexts); err == nil && namesProbes {
		callsStubs, err = contain(e.stubTexts)
	}
	return namesProbes, callsStubs, err
}

// symbols looks for the names of an object. The name of a stub may be a part of others, as it is of the probe
// object's: only a symbol of that name makes the object one to convert.
func (e *examiner) symbols(o *elfreloc.Object) (namesProbes, callsStubs bool, err error) {
	if namesProbes, callsStubs, err = e.mentions(o.NamesContain); err == nil && callsStubs {
		callsStubs, err = e.options.HasStub(o)
	}
	hasBase := func(s elfreloc.Section) bool { return s.Name == notes.BaseSection } // perhaps of others' macros
	if namesProbes = namesProbes || e.hasRecords(o); err == nil && !callsStubs && (namesProbes || slices.ContainsFunc(o.Sections, hasBase)) {
		callsStubs, err = patch.NeedsRestore(o, e.options)
	}
	return namesProbes, callsStubs, err
}

// hasRecords reports whether an object was converted, in any layout: the target of the link is not known yet. Its probe
// objects may have names with another prefix, which the link then refuses.
func (e *examiner) hasRecords(o *elfreloc.Object) bool {
	layouts := e.options.Layout.Candidates()
	return slices.ContainsFunc(o.Sections, func(sec elfreloc.Section) bool {
		return slices.ContainsFunc(layouts, func(l linkerset.Layout) bool {
			_, ok := l.IsRecordSection(&sec)
			return ok
		})
	})
}

// bitcode looks at LLVM bitcode.
func (e *examiner) bitcode(c *contents, src *input.Source) (err error) {
	c.lto.Compiler, c.addsLibraries = lto.LLVM, e.linker == lld
	if c.namesProbes, c.callsStubs, err = e.mentions(src.Mentions); err != nil || !c.namesProbes {
		return err
	}
	return e.addLTO(c, src, nil, c.callsStubs)
}

// object looks at the names of an object. What was linked is not looked into.
func (e *examiner) object(c *contents, src *input.Source) error {
	if _, typ, ok := src.Ident(); ok && typ == elf.ET_DYN {
		c.elfType = typ
		return nil
	}
	err := e.relocatableObject(c, src)
	if err == nil {
		return nil
	}
	// What holds no probe need not be readable.
	if named, _ := src.Mentions(append(e.stubTexts[:len(e.stubTexts):len(e.stubTexts)], []byte(patch.UnconvertedSection))); !named {
		return nil
	}
	return err
}

func (e *examiner) relocatableObject(c *contents, src *input.Source) error {
	o, err := src.Image()
	if err != nil {
		return err
	}
	if c.elfType = o.Type; c.elfType != elf.ET_REL {
		return nil
	}
	c.addsLibraries = e.linker == lld && addsLibraries(o.Object)
	c.hasUnlinkedNotes = e.isRelocatable && notes.HasUnlinked(o.Object)
	if c.lto, err = e.ltoCode(o.Object); err != nil {
		return err
	}
	if err := patch.CheckMarks(o.Object); err != nil {
		return err
	}
	if c.namesProbes, c.callsStubs, err = e.symbols(o.Object); err != nil {
		return err
	}
	if c.namesProbes {
		c.target = max(c.target, patch.TargetOf(o.Object))
	}
	if e.options.Layout.Format == linkerset.FreeBSD || o.OSABI() == elf.ELFOSABI_FREEBSD {
		if c.hasKernelTracepoints, err = input.HasKernelTracepoints(o.Object); err != nil {
			return err
		}
	}
	if c.lto.Compiler != "" {
		c.callsStubs = c.callsStubs || c.lto.Probes > 0
		return e.addLTO(c, src, o, c.lto.Probes > 0)
	}
	if c.namesProbes && !c.callsStubs {
		e.addObject(c, o)
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

// addObject adds what an object that needs no conversion needs to the contents of its file.
func (e *examiner) addObject(c *contents, o *input.Object) {
	if e.isRelocatable {
		return
	}
	if c.needs == nil {
		c.needs = newNeeds(e.options)
	}
	c.needs.err = errors.Join(c.needs.err, c.needs.add(e.options, o, patch.NewScan(o.Object, o.Machine, e.options)))
}

// addLTO adds a source that the linker, or its plugin, generates code of, with probes or without: an object, or
// bitcode, for which o is nil.
func (e *examiner) addLTO(c *contents, src *input.Source, o *input.Object, probes bool) error {
	c.generatesProbes = c.generatesProbes || probes
	if e.isRelocatable || e.linker == lld {
		return nil
	}
	symbols, err := src.LTOSymbols(o)
	if err != nil {
		return err
	}
	symbols = slices.DeleteFunc(symbols, func(s lto.Symbol) bool {
		return !slices.ContainsFunc(e.probeTexts, func(name []byte) bool { return strings.Contains(s.Name, string(name)) })
	})
	if len(symbols) == 0 {
		return nil
	}
	c.namesProbes = true
	if c.needs == nil {
		c.needs = newNeeds(e.options)
	}
	return c.needs.addLTO(e.options, src.Name, o, symbols)
}

// ltoCode finds the intermediate code of an object that the linker takes.
func (e *examiner) ltoCode(o *elfreloc.Object) (lto.Code, error) {
	code, err := lto.Find(o, e.stubTexts)
	if code.Fat && err == nil && !e.fatLTO[code.Compiler] {
		return lto.Code{}, nil
	}
	return code, err
}

// archive looks at the members of an archive.
func (e *examiner) archive(c *contents, f *input.File, o input.Options) error {
	var memberErrs error
	lib, err := f.Archive(o)
	if err == nil {
		err = lib.Each(func(src *input.Source) error {
			if src.Err() != nil {
				memberErrs = errors.Join(memberErrs, e.nested(src.Err()))
				return nil
			}
			names, probes, err := e.member(c, src)
			c.namesProbes, c.callsStubs = c.namesProbes || names, c.callsStubs || probes
			if probes && lib.Thin {
				c.members = append(c.members, e.examine(inputFile{path: src.File.Path, name: src.File.Path, isOptional: true}))
			}
			memberErrs = errors.Join(memberErrs, err)
			return nil
		})
	}
	if err == nil || memberErrs != nil {
		return memberErrs
	}
	// A linker may read what this program does not.
	c.namesProbes, c.callsStubs, err = e.mentions(f.Source().Mentions)
	return err
}

// nested returns the error of a member of a thin archive that is in another one, if probes may be there: GNU ld
// and gold read it where it was before the other archive was converted. Other errors are the linker's to report.
func (e *examiner) nested(err error) error {
	if n, ok := errors.AsType[*input.NestedError](err); ok && e.examine(inputFile{path: n.Path, name: n.Path}).namesProbes {
		return err
	}
	return nil
}

// member looks at a member of an archive. If it is no object that can be read, names may be
// anywhere in it.
func (e *examiner) member(c *contents, src *input.Source) (namesProbes, callsStubs bool, err error) {
	typ, err := src.Type()
	if err != nil {
		return false, false, err
	}
	if typ == input.BitcodeFile {
		c.addsLibraries = e.linker == lld
		if namesProbes, callsStubs, err = e.mentions(src.Mentions); err == nil && namesProbes {
			err = e.addLTO(c, src, nil, callsStubs)
		}
		return namesProbes, callsStubs, err
	}
	o, err := src.Image()
	if err != nil {
		return e.mentions(src.Mentions)
	}
	c.addsLibraries = c.addsLibraries || e.linker == lld && addsLibraries(o.Object)
	code, err := e.ltoCode(o.Object)
	if err != nil {
		return e.mentions(src.Mentions)
	}
	if code.Compiler != "" {
		err := e.addLTO(c, src, o, code.Probes > 0)
		return c.namesProbes, code.Probes > 0, err
	}
	if o.Type != elf.ET_REL {
		return e.mentions(o.NamesContain)
	}
	if err := patch.CheckMarks(o.Object); err != nil {
		return true, true, err
	}
	if namesProbes, callsStubs, err = e.symbols(o.Object); err != nil {
		return e.mentions(src.Mentions)
	}
	if namesProbes {
		c.target = max(c.target, patch.TargetOf(o.Object))
	}
	if namesProbes && !callsStubs {
		e.addObject(c, o)
	}
	return namesProbes, callsStubs, nil
}
