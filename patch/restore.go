package patch

// objcopy --localize-hidden, and -G of other names, make hidden symbols local. A link keeps one of each of those
// that conversions and sdt.h define in COMDAT groups: the base of notes, the note of functions, semaphores, and
// probe objects. Once these are local, linkers refuse what refers to a group that they have dropped (GNU
// objcopy), or keep each object's own (llvm-objcopy, which also takes the flag from the groups). Then notes
// of one image have several bases, and tracers arm wrong addresses.

import (
	"cmp"
	"debug/elf"
	"slices"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/notes"
)

// localizedSymbol is a symbol that was global and weak, of which a link keeps one.
type localizedSymbol struct {
	index uint32
	name  string // that it had
	elfreloc.Symbol
}

// NeedsRestore reports whether Restore may change an object. It does not ask opts.ProbeSource.
func NeedsRestore(o *elfreloc.Object, opts Options) (bool, error) {
	isLocalized, err := IsLocalized(o, opts.ProbePrefix)
	if err != nil || isLocalized {
		return isLocalized, err
	}
	return hasUnknownNames(o, opts.probePrefix())
}

// IsLocalized reports whether a tool has made symbols of an object local, or strong, or has renamed them, that a link has to see by
// their names. Probe objects have a prefix, "" for the default.
func IsLocalized(o *elfreloc.Object, probePrefix string) (bool, error) {
	symbols, err := localizedSymbols(o, cmp.Or(probePrefix, DefaultProbePrefix))
	return len(symbols) > 0, err
}

// Restore makes symbols global again that a tool has made local, and gives notes of an earlier conversion the names of probes that
// opts.ProbeSource knows. The result takes the place of the object; it is nil if nothing is to be done. Errors are of type *elfreloc.Error.
func Restore(o *elfreloc.Object, opts Options) (*elfreloc.Output, error) {
	symbols, err := localizedSymbols(o, opts.probePrefix())
	if err != nil {
		return nil, err
	}
	isUnknown := false
	if opts.ProbeSource != nil {
		if isUnknown, err = hasUnknownNames(o, opts.probePrefix()); err != nil {
			return nil, err
		}
	}
	if len(symbols) == 0 && !isUnknown {
		return nil, nil
	}
	e, err := o.Edit()
	if err != nil {
		return nil, err
	}
	if err := restoreSymbols(e, symbols); err != nil {
		return nil, err
	}
	if isUnknown {
		if err := renameNotes(e, opts.ProbeSource); err != nil {
			return nil, err
		}
	}
	if !e.Changed() {
		return nil, nil
	}
	return e.Output()
}

// restoreSymbols makes symbols global again, and their groups COMDAT.
func restoreSymbols(e *elfreloc.Edit, symbols []localizedSymbol) error {
	o := e.Object()
	groups, err := o.Groups()
	if err != nil {
		return err
	}
	r := restorer{e: e, o: o, globals: map[string]uint32{}}
	for i := range symbols {
		s := &symbols[i]
		if err := r.restore(s); err != nil {
			return err
		}
		if group := groups[s.Section]; group != 0 {
			r.restoreGroup(group, s)
		}
	}
	return nil
}

// localizedSymbols returns the symbols that a tool has made local, or has renamed.
func localizedSymbols(o *elfreloc.Object, probePrefix string) (symbols []localizedSymbol, err error) {
	holdsShared := func(s elfreloc.Section) bool {
		return s.Name == notes.BaseSection || s.Name == notes.FunctionNoteSection ||
			s.Flags&elf.SHF_GROUP != 0 && (notes.HoldsSemaphores(&s) || strings.Contains(s.Name, probePrefix))
	}
	if o.Type != elf.ET_REL || !slices.ContainsFunc(o.Sections, holdsShared) {
		return nil, nil
	}
	syms, err := o.Symbols()
	if err != nil {
		return nil, err
	}
	added := "" // before all names (objcopy --prefix-symbols)
	for i := 1; i < syms.Len(); i++ {
		section, _ := syms.Place(i)
		if section <= 0 || !holdsShared(o.Sections[section]) {
			continue
		}
		s := syms.At(i)
		name := sharedName(s, o.Sections[s.Section].Name, probePrefix)
		if prefix, ok := strings.CutSuffix(s.Name, name); ok && name != "" {
			added = cmp.Or(added, prefix)
		}
		if name != "" && (s.Bind != elf.STB_WEAK || s.Name != name) {
			symbols = append(symbols, localizedSymbol{uint32(i), name, s})
		}
	}
	if added == "" {
		return symbols, nil
	}
	symbols = slices.DeleteFunc(symbols, func(s localizedSymbol) bool { return strings.HasPrefix(s.name, added) })
	return append(symbols, prefixedSymbols(syms, added, probePrefix)...), nil
}

// prefixedSymbols returns the probe objects and semaphores to whose names a tool has added a prefix, and whose names do not show
// otherwise that they have others.
func prefixedSymbols(syms *elfreloc.Symbols, added, probePrefix string) (symbols []localizedSymbol) {
	for i, s := range syms.WithPrefix(added) {
		name := s.Name[len(added):]
		isSemaphore := s.Visibility() == elf.STV_HIDDEN && strings.HasSuffix(name, notes.SemaphoreSuffix)
		if s.Type != elf.STT_SECTION && s.Type != elf.STT_FILE && (isSemaphore || strings.HasPrefix(name, probePrefix)) {
			symbols = append(symbols, localizedSymbol{uint32(i), name, s})
		}
	}
	return symbols
}

// sharedName returns the name by which a link has to see a symbol of a section, "" for another symbol. Symbols of compilers, and those
// of sections, are not hidden.
func sharedName(s elfreloc.Symbol, section, probePrefix string) string {
	switch {
	case s.Visibility() != elf.STV_HIDDEN || s.Name == "":
	case section == notes.BaseSection:
		return notes.BaseSymbol
	case section == notes.FunctionNoteSection:
		return notes.FunctionSymbol
	case s.Bind == elf.STB_LOCAL && (section == notes.SemaphoreSection || strings.HasPrefix(s.Name, probePrefix)):
		return s.Name
	}
	return ""
}

// restorer makes symbols global.
type restorer struct {
	e       *elfreloc.Edit
	o       *elfreloc.Object
	globals map[string]uint32 // by name
}

// restore makes a symbol global. If the object has a global symbol of the name, that takes its place, and gets its
// definition unless it has one.
func (r *restorer) restore(s *localizedSymbol) error {
	global := s.Symbol
	if global.Name = s.name; global.Bind == elf.STB_LOCAL || s.Section > 0 && s.Visibility() == elf.STV_HIDDEN {
		global.Bind = elf.STB_WEAK
	}
	to, err := r.global(s)
	switch {
	case err != nil:
		return err
	case s.Bind != elf.STB_LOCAL && (to == 0 || to == s.index): // renamed, or no longer weak
		to = s.index
		r.e.SetSymbol(to, global)
	case to == 0:
		to = r.e.AddSymbol(global)
	case r.e.Symbol(to).Section == 0:
		r.e.SetSymbol(to, global)
	}
	r.globals[s.name] = to
	switch {
	case to == s.index:
	case s.Bind == elf.STB_LOCAL:
		r.e.RedirectSymbol(s.index, to)
		r.e.SetSymbol(s.index, elfreloc.Symbol{Name: restoredLabel, Bind: elf.STB_LOCAL, Section: s.Section, Value: s.Value})
	default:
		r.e.RemoveSymbol(s.index, to)
	}
	return nil
}

// restoredLabel is the name that is left of a symbol that another one has taken the place of.
const restoredLabel = ".Lsdt_restored"

// global returns the global symbol that a symbol had the name of, 0 for none.
func (r *restorer) global(s *localizedSymbol) (uint32, error) {
	if to, ok := r.globals[s.name]; ok {
		return to, nil
	}
	syms, err := r.o.Symbols()
	if err != nil {
		return 0, err
	}
	for i := range syms.Named(s.name) {
		if i >= syms.FirstGlobal() {
			return uint32(i), nil
		}
	}
	return 0, nil
}

// restoreGroup makes the group of a restored symbol one that linkers keep once. The group of the base has the name of its section.
func (r *restorer) restoreGroup(group int, s *localizedSymbol) {
	r.e.SetComdat(group)
	signature := r.o.Sections[group].Info
	syms, err := r.o.Symbols()
	if s.name != notes.BaseSymbol || err != nil || signature == 0 || int(signature) >= syms.Len() {
		return
	}
	if sym := r.e.Symbol(signature); sym.Type != elf.STT_SECTION && sym.Name != notes.BaseSection && signature != s.index {
		sym.Name = notes.BaseSection
		r.e.SetSymbol(signature, sym)
	}
}
