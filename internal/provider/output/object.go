package output

// The object of providers that builds link has the semaphores of their
// probes, and nothing else.
//
// Sources are not edited for Linux: what fires a probe has its note already. The object is
// data, so it can be made for machines of which no more is known than their ABI.

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/dof"
	"sdtconvert/internal/emit"
	"sdtconvert/internal/input"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/provider"
)

// Target is what an object is made for, as objects of the same link tell it.
type Target struct {
	System provider.System // objects may tell that, too

	empty   *elfreloc.Object
	name    string // of the object that told it
	machine arch.Machine
	notes   emit.LinkNotes
}

// Known reports whether anything has told the target.
func (t *Target) Known() bool { return t.empty != nil }

// ABI returns the target's ABI without its flags, the zero value if it is not known.
func (t *Target) ABI() elfreloc.ABI {
	if !t.Known() {
		return elfreloc.ABI{}
	}
	return withoutFlags(t.empty)
}

// withoutFlags returns the ABI of an object without its flags, in which the objects of a
// link may differ.
func withoutFlags(o *elfreloc.Object) elfreloc.ABI {
	abi := o.ABI()
	abi.Flags = 0
	return abi
}

// Add takes in a file that is linked with the object: an object, or an archive of some.
// LLVM bitcode, libtool's .lo files and other members of archives say nothing of the target;
// any other file is an error.
func (t *Target) Add(path string) error {
	return input.Each(path, input.Options{FollowThin: true}, func(src *input.Source) error {
		typ, err := src.Type()
		if err != nil {
			return err
		}
		if typ != input.ELFFile {
			if src.Member != nil || typ == input.BitcodeFile || isLibtool(src) {
				return nil
			}
			_, err := src.Image() // explains what it is
			return err
		}
		o, err := elfreloc.Open(src, src.Size, src.Name)
		if err != nil {
			return err
		}
		return t.add(o)
	})
}

// isLibtool reports whether a source is a libtool object, a text that names objects.
func isLibtool(src *input.Source) bool {
	head := make([]byte, min(src.Size, input.HeadSize))
	if _, err := src.ReadAt(head, 0); err != nil && err != io.EOF {
		return false
	}
	first, _, _ := bytes.Cut(head, []byte("\n"))
	return bytes.HasPrefix(first, []byte("# ")) && bytes.HasSuffix(first, []byte(" - a libtool object file"))
}

func (t *Target) add(o *elfreloc.Object) error {
	fail := func(err error) error { return &elfreloc.Error{File: o.Name, Err: err} }
	if o.Type != elf.ET_REL {
		return fail(errors.New("is linked, and not an object"))
	}
	if err := t.addSystem(o.OSABI()); err != nil {
		return fail(err)
	}
	if !t.Known() {
		empty, err := o.Empty("")
		if err != nil {
			return err
		}
		t.empty, t.name, t.machine = empty, o.Name, machines.Lookup(o.ABI())
	}
	if abi, first := withoutFlags(o), t.ABI(); abi != first {
		return fail(fmt.Errorf("is of %v, %v, and %s of %v, %v: they are not of one link", abi.Machine, abi.Class, t.name, first.Machine, first.Class))
	}
	return t.notes.Add(o, t.machine)
}

// Name makes the machine of a triplet, or of a name that Go has for it, the target, of the
// class that flags of a compiler choose.
func (t *Target) Name(name string, flags []string) error {
	abi, ok := machines.Target(name)
	if !ok {
		return fmt.Errorf("the machine of %s is not known; give an object of the link", name)
	}
	for _, flag := range flags {
		class := abi.Class
		switch flag {
		case "-m32":
			class = elf.ELFCLASS32
		case "-m64":
			class = elf.ELFCLASS64
		}
		if abi, ok = machines.OfClass(abi, class); !ok {
			return fmt.Errorf("%s: unknown machine for %s; give an object of the link", flag, name)
		}
	}
	o, err := blank(abi, t.System.OSABI())
	if err != nil {
		return err
	}
	t.empty, err = o.Empty("")
	t.machine = machines.Lookup(abi)
	return err
}

// blank returns an object of nothing but a header (gABI, "ELF Header").
func blank(abi elfreloc.ABI, osABI elf.OSABI) (*elfreloc.Object, error) {
	var order binary.ByteOrder = binary.LittleEndian
	if abi.Data == elf.ELFDATA2MSB {
		order = binary.BigEndian
	}
	const typ, version = uint16(elf.ET_REL), elf.EV_CURRENT
	machine := uint16(abi.Machine)
	ident := [elf.EI_NIDENT]byte{0x7f, 'E', 'L', 'F', byte(abi.Class), byte(abi.Data), byte(version), byte(osABI)}
	var header any = elf.Header32{Ident: ident, Type: typ, Machine: machine, Version: uint32(version), Flags: abi.Flags, Ehsize: 52}
	if abi.Class == elf.ELFCLASS64 {
		header = elf.Header64{Ident: ident, Type: typ, Machine: machine, Version: uint32(version), Flags: abi.Flags, Ehsize: 64}
	}
	b, err := binary.Append(nil, order, header)
	if err != nil {
		return nil, err
	}
	return elfreloc.Open(bytes.NewReader(b), int64(len(b)), "")
}

// objectSource is what the object names as its source file.
const objectSource = "sdtconvert-provider"

// Write makes the object. The semaphores are hidden, so that each program and library has its own, unless
// they are shared.
func (t *Target) Write(providers []*provider.Provider, shared bool) ([]byte, error) {
	a, err := emit.NewObject(t.empty, t.machine, objectSource)
	if err != nil {
		return nil, err
	}
	started := false
	for _, p := range providers {
		for _, probe := range p.Probes {
			if !started {
				started = true
				a.Section(emit.Section{
					Name: notes.SemaphoreSection, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_WRITE, Align: notes.SemaphorePage,
				})
			}
			a.Symbol(emit.Symbol{
				Name: notes.SemaphoreName(p.Name, probe.Name), Bind: elf.STB_GLOBAL, Type: elf.STT_OBJECT, Hidden: !shared, Size: notes.SemaphoreSize,
			})
			a.Zero(notes.SemaphoreRoom)
		}
	}
	t.notes.OfData(t.machine).Write(a, t.empty.Encoding.Word())
	return a.Bytes()
}

// IsOwnObject reports whether a file is an object that Write or WriteDOF has made: nothing is lost
// when it is written again.
func IsOwnObject(path string) bool {
	f, err := input.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	src := f.Source()
	if typ, err := src.Type(); err != nil || typ != input.ELFFile {
		return false
	}
	o, err := elfreloc.Open(src, src.Size, src.Name)
	return err == nil && o.Type == elf.ET_REL && isOwn(o)
}

func isOwn(o *elfreloc.Object) bool {
	hasDOF, hasContent, hasCode := false, false, false
	for i := range o.Sections {
		s := &o.Sections[i]
		loaded := s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 && s.Type != elf.SHT_NOTE
		hasContent = hasContent || loaded
		hasCode = hasCode || loaded && s.Flags&elf.SHF_EXECINSTR != 0
		hasDOF = hasDOF || s.Name == dof.SectionName
	}
	files, _ := emit.SourceFiles(o) // of a broken table none
	ours := len(files) > 0 && files[len(files)-1] == objectSource
	switch {
	case hasDOF: // and perhaps DTrace's own code, with files of its own
		return ours
	case hasCode || len(files) > 1:
		return false
	}
	return ours || !hasContent && len(files) == 0
}

// addSystem adds what an object says about its system: illumos' compilers say nothing,
// or Solaris.
func (t *Target) addSystem(abi elf.OSABI) error {
	system := provider.Linux
	switch abi {
	case elf.ELFOSABI_FREEBSD:
		system = provider.FreeBSD
	case elf.ELFOSABI_SOLARIS:
		system = provider.Illumos
	}
	switch {
	case system == provider.Linux || system == t.System:
	case t.System != provider.Linux:
		return fmt.Errorf("is of %v, and the link of %v", system, t.System)
	case t.Known():
		return fmt.Errorf("is of %v, and %s does not say so: they are not of one link, unless --target says %v", system, t.name, system)
	default:
		t.System = system
	}
	return nil
}
