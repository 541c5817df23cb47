package patch

import (
	"debug/elf"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// targetSymbol returns the symbol that a retargeted jump goes to.
func (a *applier) targetSymbol(s *Site) (uint32, error) {
	switch s.Change.Target {
	case arch.TargetThunk:
		return a.thunkSymbol(), nil
	case arch.TargetSemaphore:
		sym, _ := a.p.semaphores.symbol(s.Stub.ID)
		return sym, nil
	case arch.TargetTestHelper:
		return a.testHelper(s)
	}
	if a.helper == 0 {
		sec, size, err := a.addHelper(helperSection, s.Relocs.Rela, nil, arch.Stub{Kind: arch.Enabled, Thunk: a.p.Thunk})
		if err != nil {
			return 0, err
		}
		a.helper = a.e.SectionSymbol(sec)
		if a.m.Traits().CodeMark != "" {
			a.helper = a.e.AddSymbol(elfreloc.Symbol{Name: helperName, Bind: elf.STB_LOCAL, Type: elf.STT_FUNC, Section: sec, Size: size})
		}
	}
	return a.helper, nil
}

// helperName is what the helper is called where it has a symbol, and helperSection is its
// section.
const (
	helperName    = "__sdt_return_0"
	helperSection = ".text." + helperName
)

// IsHelper reports whether a name is one that conversions give to helpers, the functions
// that disabled is-enabled tests go to. Some helpers have no symbol.
func IsHelper(name string) bool {
	return name == helperName || strings.HasPrefix(name, testPrefix)
}

// testPrefix is what the helpers are called that load semaphores, before the name of the
// probe.
const testPrefix = "__sdt_enabled_"

// testHelper returns the symbol of the helper that loads the semaphore of a site's probe, which
// is added once for an object.
func (a *applier) testHelper(s *Site) (uint32, error) {
	semaphore, name := a.p.semaphores.symbol(s.Stub.ID)
	name = testPrefix + name
	if sym := a.tests[name]; sym != 0 {
		return sym, nil
	}
	t := a.m.Traits()
	sym := a.e.AddSymbol(elfreloc.Symbol{Name: name, Bind: elf.STB_LOCAL, Type: elf.STT_FUNC})
	sec, size, err := a.addHelper(".text."+name, s.Relocs.Rela, map[string]uint32{semaphoreSymbol: semaphore, selfSymbol: sym}, arch.Stub{
		Kind: arch.Enabled, LandingPad: (t.Veneers || a.p.loadsThroughRegister) && t.Features.LandingPad != 0, Thunk: a.p.Thunk, Semaphore: semaphoreSymbol, Self: selfSymbol,
	})
	function := a.e.Symbol(sym)
	function.Section, function.Size = sec, size
	a.e.SetSymbol(sym, function)
	a.tests[name] = sym
	return sym, err
}

// addHelper adds a section with the code of a helper, which is that of a stub and the
// mark, and returns it and its size. symbols are those that the code names, but for the
// return thunk.
func (a *applier) addHelper(name string, rela bool, symbols map[string]uint32, s arch.Stub) (sec int, size uint64, err error) {
	t := a.m.Traits()
	var code []byte
	var insns []arch.Insn // those with relocations, which are from the start of the code
	for _, insn := range a.m.Stub(s) {
		if insn.Reloc != nil {
			r := *insn.Reloc
			r.Offset += uint64(len(code))
			insns = append(insns, arch.Insn{Symbol: insn.Symbol, Reloc: &r})
		}
		code = append(code, insn.Code...)
	}
	code = append(code, t.HelperMark.Code...)
	sec = a.e.AddSection(elfreloc.NewSection{
		Name: name, Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Align: t.HelperAlign,
		Data: code, Relocs: len(insns) > 0, Rela: rela,
	})
	if t.CodeMark != "" {
		a.e.AddSymbol(elfreloc.Symbol{Name: t.CodeMark, Bind: elf.STB_LOCAL, Section: sec})
	}
	for _, insn := range insns {
		r := insn.Reloc
		sym, ok := symbols[insn.Symbol]
		if !ok {
			sym = a.thunkSymbol()
			if err := a.listReturn(a.e.SectionSymbol(sec), r.Offset-t.ReturnThunk.Field); err != nil {
				return 0, 0, err
			}
		}
		if err := a.e.AddRelocation(sec, elfreloc.Relocation{Offset: r.Offset, Type: r.Type, Sym: sym, Addend: r.Addend}); err != nil {
			return 0, 0, err
		}
	}
	return sec, uint64(len(code)), nil
}

// Names for Machine.Stub of symbols that only relocations of the helper name. The NUL keeps them from being the name of a
// thunk.
const (
	semaphoreSymbol = "\x00semaphore"
	selfSymbol      = "\x00self"
)

// thunkSymbol finds the return thunk, or makes an undefined symbol for it.
func (a *applier) thunkSymbol() uint32 {
	if a.thunk != 0 {
		return a.thunk
	}
	syms := a.p.Scan.symbols()
	for i := range syms.Named(a.p.Thunk) {
		if i >= syms.FirstGlobal() {
			a.thunk = uint32(i)
			return a.thunk
		}
	}
	a.thunk = a.e.AddSymbol(elfreloc.Symbol{Name: a.p.Thunk, Bind: elf.STB_GLOBAL})
	return a.thunk
}

// listReturn lists a new jump to the return thunk where the others are listed, if they
// are.
func (a *applier) listReturn(sym uint32, off uint64) error {
	list := a.m.Traits().ReturnThunk.Sites
	for i := range a.o.Sections {
		if list == "" || a.o.Sections[i].Name != list {
			continue
		}
		field := make([]byte, 4)
		if !a.m.Traits().Rela {
			a.o.Encoding.Order.PutUint32(field, uint32(off))
		}
		at := a.e.Append(i, field)
		if err := linkerset.AddDistance(a.e, a.m, i, at, linkerset.SymbolRef{Sym: sym, Addend: int64(off)}); err != nil {
			return err
		}
	}
	return nil
}
