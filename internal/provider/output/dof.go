package output

import (
	"bytes"
	"debug/elf"
	"fmt"
	"io"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/dof"
	"sdtconvert/internal/emit"
	"sdtconvert/internal/input"
)

// DOF is what an object with DTrace's object format is made of.
type DOF struct {
	Providers []dof.Provider
	// Drti is an object with the code that registers the format when a program starts, which
	// becomes a part of the object; nil for none. It names the format dof.Symbol.
	Drti *elfreloc.Object
	Lazy bool // the format is registered by other means
}

// OpenDrti reads Drti from a regular file.
func (d *DOF) OpenDrti(path string) error {
	f, err := input.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.CheckRead(0, f.Size()); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	data := make([]byte, f.Size())
	if _, err := f.ReadAt(data, 0); err != nil && err != io.EOF {
		return fmt.Errorf("%s: %w", path, err)
	}
	d.Drti, err = elfreloc.Open(bytes.NewReader(data), int64(len(data)), path)
	return err
}

// symbol returns the name of the format's symbol.
func (d *DOF) symbol() string {
	if d.Lazy {
		return dof.LazySymbol
	}
	return dof.Symbol
}

// CheckDOF refuses machines that DTrace does not know, and a Drti that is of no use.
func (t *Target) CheckDOF(d DOF) error {
	abi := t.ABI()
	if _, ok := t.machine.(arch.DOFMachine); !ok {
		return fmt.Errorf("DTrace has no form of probes for %v of %v on %v", abi.Machine, abi.Class, t.System)
	}
	if d.Drti == nil {
		return nil
	}
	fail := func(format string, args ...any) error {
		return &elfreloc.Error{File: d.Drti.Name, Err: fmt.Errorf(format, args...)}
	}
	if withoutFlags(d.Drti) != abi || d.Drti.Type != elf.ET_REL {
		return fail("is not an object of %v, %v", abi.Machine, abi.Class)
	}
	syms, err := d.Drti.Symbols()
	if err != nil {
		return err
	}
	used := false
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		if s := syms.At(i); s.Name == d.symbol() && s.Section != 0 {
			return fail("defines %s, which is what it is to register", s.Name)
		} else if s.Name == d.symbol() {
			used = true
		}
	}
	if !used {
		return fail("does not register %s", d.symbol())
	}
	return nil
}

// WriteDOF makes the object for what CheckDOF does not refuse. Where there are no
// providers it holds nothing, or what is in Drti is of no use and left out.
func (t *Target) WriteDOF(d DOF) ([]byte, error) {
	base, err := t.base(d)
	if err != nil {
		return nil, err
	}
	e, err := base.Edit()
	if err != nil {
		return nil, err
	}
	if len(d.Providers) > 0 {
		if err := t.addDOF(e, d); err != nil {
			return nil, err
		}
	}
	if !e.Changed() {
		return base.ReadFile(0, base.Size())
	}
	return emit.EditedFile(e)
}

// base returns the object that the format is added to: drti, or one of notes alone, for
// linkers that ask for them.
func (t *Target) base(d DOF) (*elfreloc.Object, error) {
	if d.Drti != nil && len(d.Providers) > 0 {
		return d.Drti, nil
	}
	blank, err := blank(t.empty.ABI(), t.System.OSABI())
	if err != nil {
		return nil, err
	}
	forBlank := *t
	if forBlank.empty, err = blank.Empty(""); err != nil {
		return nil, err
	}
	if !t.System.LinksGNU() {
		return forBlank.empty, nil
	}
	file, err := forBlank.Write(nil, false)
	if err != nil {
		return nil, err
	}
	return elfreloc.Open(bytes.NewReader(file), int64(len(file)), "")
}

// addDOF adds the section of the format, its symbol, and relocations against functions.
func (t *Target) addDOF(e *elfreloc.Edit, d DOF) error {
	encoding := e.Object().Encoding
	data, fixups, err := dof.Write(dof.Format{
		Order: encoding.Order, LP64: encoding.Class == elf.ELFCLASS64, Relocation: t.System.Relocation(),
	}, d.Providers)
	if err != nil {
		return err
	}
	m := machines.Lookup(e.Object().ABI())
	if d.Drti != nil || !t.System.LinksGNU() { // what Write makes has it
		e.AddSymbol(elfreloc.Symbol{Name: objectSource, Bind: elf.STB_LOCAL, Type: elf.STT_FILE, Section: elfreloc.SectionAbs})
	}
	section := e.AddSection(elfreloc.NewSection{
		Name: dof.SectionName, Type: dof.SectionType, Flags: elf.SHF_ALLOC, Align: dof.SectionAlign, Data: data,
		Relocs: true, Rela: true,
	})
	if err := t.addSymbol(e, d, elfreloc.Symbol{Name: d.symbol(), Type: elf.STT_OBJECT, Section: section, Size: uint64(len(data))}); err != nil {
		return err
	}
	typ := m.Traits().DOF.Distance
	if t.System.Relocation() == dof.SetX {
		typ = m.Traits().Word
	}
	symbols := map[string]uint32{}
	for _, f := range fixups {
		symbol, ok := symbols[f.Symbol]
		if !ok {
			symbol = e.AddSymbol(elfreloc.Symbol{Name: f.Symbol, Bind: elf.STB_GLOBAL, Type: elf.STT_FUNC, Other: byte(elf.STV_HIDDEN)})
			symbols[f.Symbol] = symbol
		}
		if err := e.AddRelocation(section, elfreloc.Relocation{Offset: f.Offset, Type: typ, Sym: symbol}); err != nil {
			return err
		}
	}
	return nil
}

// addSymbol defines the symbol of the format. Where the code that uses it is in the same
// object it is local, and so are the hidden symbols of that, so that several such objects
// may be in one program.
func (t *Target) addSymbol(e *elfreloc.Edit, d DOF, symbol elfreloc.Symbol) error {
	if d.Drti == nil {
		symbol.Bind, symbol.Other = elf.STB_GLOBAL, byte(elf.STV_HIDDEN)
		e.AddSymbol(symbol)
		return nil
	}
	symbol.Bind = elf.STB_LOCAL
	format := e.AddSymbol(symbol)
	syms, err := d.Drti.Symbols()
	if err != nil {
		return err
	}
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		switch s := syms.At(i); {
		case s.Name == symbol.Name:
			e.RemoveSymbol(uint32(i), format)
		case s.Defined() && s.Visibility() == elf.STV_HIDDEN:
			s.Bind, s.Other = elf.STB_LOCAL, s.Other&^3
			e.RemoveSymbol(uint32(i), e.AddSymbol(s))
		}
	}
	return nil
}
