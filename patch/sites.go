package patch

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
)

// Site is a reference with its disabled form.
type Site struct {
	*Reference
	Change arch.Change
	// Operands say where the arguments of a marked NOP are, as notes have them; "" for
	// all other forms, whose arguments are where a call has them.
	Operands string
	// SharesRelocation reports that an earlier site owns the relocation, because a stub's address was loaded once
	// for both: this one leaves the relocation alone.
	SharesRelocation bool
}

// Addr returns the address of the site's first byte.
func (s *Site) Addr() elfreloc.Addr {
	return elfreloc.Addr{Section: s.Relocs.Target, Offset: s.Change.Site.Offset}
}

// locatedSite is a site as Decode or Follow has found it, or what is wrong with it.
type locatedSite struct {
	arch.Site
	err    error
	shared bool
}

// addSite plans one site of a reference, or refuses it.
func (p *planner) addSite(ref *Reference, located locatedSite, t arch.Text) error {
	site, err := p.planSite(ref, located, t)
	switch {
	case err == nil:
		site.Change.Site.Code, site.Change.New = p.copyCode(site.Change.Site.Code), p.copyCode(site.Change.New)
		p.Sites = append(p.Sites, site)
	case isRefusal(err):
		p.refuse(ref, err)
	default:
		return err
	}
	return nil
}

// planSite returns a site with its disabled form. A site that has none is an *arch.Refusal.
func (p *planner) planSite(ref *Reference, located locatedSite, t arch.Text) (site Site, err error) {
	switch {
	case located.err != nil:
		return site, located.err
	case t.Encoding(located.Offset) == arch.Data:
		return site, arch.RefuseStored(fixAddress, " within code")
	case p.thunkRefused != nil:
		return site, p.thunkRefused
	}
	site = Site{Reference: ref, SharesRelocation: located.shared}
	if site.Change, err = p.disable(ref, located.Site, t); err != nil {
		return site, err
	}
	if refused := p.checkCall(ref, &site.Change); refused != nil {
		return site, refused
	}
	if located.Form == arch.Nop {
		text := p.operands[ref.addr()]
		if text == nil {
			fix := fixOperands
			if !p.Scan.hasOperands() {
				fix = fixDropped
			}
			return site, arch.Refuse(fix, "a nop without an entry in %s", OperandsSection)
		}
		site.Operands = *text
	}
	return site, nil
}

// checkCall refuses a site whose disabled form does not suit the text around it, which was read last. A site that calls a
// helper needs no check: the helper does to the stack what the stub did.
func (p *planner) checkCall(ref *Reference, change *arch.Change) *arch.Refusal {
	if p.text.checkCall == nil || change.Site.Form == arch.Nop || change.Target == arch.TargetTestHelper {
		return nil
	}
	return p.text.checkCall(change.Site, ref.Stub.Kind)
}

// copyCode copies bytes of code, so that all sites share an allocation, and no section is kept for them.
func (p *planner) copyCode(code []byte) []byte {
	start := len(p.code)
	p.code = append(p.code, code...)
	return slices.Clip(p.code[start:])
}

// disable gives the disabled form of a site, with the text around it.
func (p *planner) disable(ref *Reference, site arch.Site, t arch.Text) (change arch.Change, err error) {
	if p.Scan.Settings.DTraceForms {
		return p.disableForDTrace(ref, site)
	}
	if ref.Stub.Name == p.Scan.Machine.Traits().PopsPushed {
		return change, arch.Refuse("do not give it with --symbol", "a function that takes off the stack what code pushes before its call")
	}
	env := p.context
	env.SemaphoreBytes, env.Reloc, env.Text = p.semaphores.loadableBytes(ref.Stub.ID, ref.Stub.Kind), ref.Reloc.Type, t
	if env.ReturnThunk && slices.Contains(p.Scan.Machine.Traits().ReturnThunk.Near, site.Form) {
		if env.Returns, err = p.thunkRelocs(ref.Relocs); err != nil {
			return change, err
		}
	}
	return p.Scan.Machine.Disable(site, ref.Stub.Kind, env)
}

// refuseOverlaps refuses each site that shares bytes with the one before.
func (p *planner) refuseOverlaps() {
	kept := 0
	for i := range p.Sites {
		s := &p.Sites[i]
		if kept > 0 && p.Sites[kept-1].Relocs.Target == s.Relocs.Target {
			last := &p.Sites[kept-1]
			site := &last.Change.Site
			if s.Change.Site.Offset < site.Offset+uint64(len(site.Code)) {
				p.refuse(s.Reference, fmt.Errorf("its bytes overlap those of the site at %#x against %q", site.Offset, last.Stub.Name))
				continue
			}
		}
		if kept < i {
			p.Sites[kept] = *s
		}
		kept++
	}
	p.Sites = p.Sites[:kept]
}

// refuse records a refusal. A refusal of the whole object is recorded once.
func (p *planner) refuse(ref *Reference, err error) {
	r, ok := errors.AsType[*arch.Refusal](err)
	ofObject := ok && r.Object
	if ofObject && p.objectRefused {
		return
	}
	p.objectRefused = p.objectRefused || ofObject
	if len(p.Refused) == maxRefused {
		p.omitted++
		return
	}
	p.Refused = append(p.Refused, Refusal{ref, err})
}

// isRefusal distinguishes a refusal from an error of the object.
func isRefusal(err error) bool { return errors.As(err, new(*arch.Refusal)) }

// thunkRelocs finds the relocations against the return thunk in a section.
func (p *planner) thunkRelocs(rs *elfreloc.RelocSection) ([]elfreloc.Relocation, error) {
	if found, ok := p.thunks[rs.Index]; ok {
		return found, nil
	}
	syms := p.Scan.symbols()
	wanted := make([]bool, syms.Len())
	for i := syms.FirstGlobal(); i < syms.Len(); i++ {
		wanted[i] = syms.Name(i) == p.Thunk
	}
	var found []elfreloc.Relocation
	err := p.Scan.Object.EachRelocationAgainst(*rs, wanted, func(_ int, r elfreloc.Relocation) error {
		if wanted[r.Sym] {
			found = append(found, r)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b elfreloc.Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
	if p.thunks == nil {
		p.thunks = make(map[int][]elfreloc.Relocation)
	}
	p.thunks[rs.Index] = found
	return found, err
}

// textReader reads the text of sections, and keeps the section that it read last.
type textReader struct {
	object     *elfreloc.Object
	checker    arch.CallChecker       // nil for none
	maps       map[int][]arch.Mapping // by section, of those that hold calls
	attributes []byte
	section    int // of text
	text       arch.Text
	checkCall  func(s arch.Site, k arch.Kind) *arch.Refusal // of text; nil if the machine's sites need no check
	relocs     []elfreloc.Relocation                        // of the last site, to be reused
}

// read returns the text of a section.
func (t *textReader) read(section int) (arch.Text, error) {
	if t.section == section {
		return t.text, nil
	}
	code, err := t.object.Data(section)
	if err != nil {
		return arch.Text{}, err
	}
	t.section, t.text = section, arch.Text{Code: code, Attributes: t.attributes, Map: t.maps[section]}
	if t.checker != nil {
		t.checkCall = t.checker.CallCheck(t.text)
	}
	return t.text, nil
}
