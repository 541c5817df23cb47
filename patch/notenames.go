package patch

// The id of a probe with a module or a function, <provider>_<module>_<function>_<name>, does not tell its provider and name. An object
// that was converted without the one that defines the probe (sdtconvert cc) has notes of <id> of the provider sdt. A link
// knows the definition.

import (
	"debug/elf"
	"strings"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/notes"
	"sdtconvert/linkerset"
)

// mayHaveModule reports whether an id may be that of a probe with a module or a function.
func mayHaveModule(id string) bool {
	return !strings.Contains(id, "___") && strings.Count(id, "_") >= 3
}

// hasUnknownNames reports whether an object may have notes whose names only another object tells: it refers to such a probe, and was
// converted.
func hasUnknownNames(o *elfreloc.Object, probePrefix string) (bool, error) {
	if !notes.HasStapsdt(o) {
		return false, nil
	}
	syms, err := o.Symbols()
	if err != nil {
		return false, err
	}
	for i, s := range syms.WithPrefix(probePrefix) {
		if i >= syms.FirstGlobal() && s.Section == 0 && mayHaveModule(s.Name[len(probePrefix):]) {
			return true, nil
		}
	}
	return false, nil
}

// renameNotes gives the notes of an object the names that a source has of their probes, and the semaphores of these, too.
func renameNotes(e *elfreloc.Edit, source ProbeSource) error {
	o := e.Object()
	relocs, err := o.RelocSections()
	if err != nil {
		return err
	}
	renamed := map[string]linkerset.Probe{}
	for i := range o.Sections {
		if s := &o.Sections[i]; s.Type != elf.SHT_NOTE || s.Name != notes.StapsdtSection {
			continue
		}
		data, err := o.Data(i)
		if err != nil {
			return err
		}
		text, moved, err := notes.Rename(o.Encoding, data, func(provider, name string) (string, string, error) {
			if provider != "sdt" || !mayHaveModule(name) {
				return provider, name, nil
			}
			probe, ok, err := source.Probe(name)
			if err != nil || !ok || !probe.FromStruct {
				return provider, name, err
			}
			renamed[name] = probe
			return linkerset.EncodeName(probe.Provider), linkerset.EncodeName(probe.Name), nil
		})
		if err != nil {
			return o.SectionError(i, err)
		}
		if moved == nil {
			continue
		}
		e.SetData(i, text)
		for _, rs := range relocs {
			if rs.Target != i {
				continue
			}
			err := o.EachRelocation(rs, func(index int, r elfreloc.Relocation) error {
				r.Offset = moved(r.Offset)
				e.SetRelocation(rs, index, r)
				return nil
			})
			if err != nil {
				return err
			}
		}
	}
	return renameSemaphores(e, renamed)
}

// renameSemaphores gives the semaphores of probes, by their ids, the names that they have elsewhere in the link.
func renameSemaphores(e *elfreloc.Edit, renamed map[string]linkerset.Probe) error {
	syms, err := e.Object().Symbols()
	if err != nil {
		return err
	}
	global := func(name string) uint32 {
		for i := range syms.Named(name) {
			if i >= syms.FirstGlobal() {
				return uint32(i)
			}
		}
		return 0
	}
	for id, probe := range renamed {
		old := global(notes.SemaphoreName("sdt", id))
		name := notes.SemaphoreName(linkerset.EncodeName(probe.Provider), linkerset.EncodeName(probe.Name))
		if old == 0 || e.Symbol(old).Visibility() != elf.STV_HIDDEN {
			continue
		}
		symbol, other := e.Symbol(old), global(name)
		symbol.Name = name
		switch {
		case other == 0:
			e.SetSymbol(old, symbol)
			continue
		case e.Symbol(other).Section == 0:
			e.SetSymbol(other, symbol)
		}
		e.RemoveSymbol(old, other)
	}
	return nil
}
