package check

import (
	"debug/elf"
	"errors"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/dof"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/patch"
)

// stubCalls checks the references to stubs in an object: each is a call that is
// still to be converted, or what cannot be.
func (c *fileChecker) stubCalls() {
	opts := &c.set.opts
	scan, err := patch.Find(c.Object.Object, c.Machine, patch.Options{Names: opts.Names, ProbePrefix: opts.ProbePrefix})
	if c.fail(err) {
		return
	}
	plan, err := patch.NewPlan(scan)
	if c.hasCalls = len(scan.Calls) > 0; c.fail(err) || len(scan.Calls)+len(scan.Refused) == 0 {
		return
	}
	objects, err := scan.ProbeObjects()
	if c.fail(err) {
		return
	}
	for _, site := range plan.Sites {
		at := site.Addr()
		c.liveSites[at] = true
		rule := LiveCall
		if site.Change.Site.Form == arch.Nop {
			n, _ := notes.CountOperands(site.Operands)
			c.count(site.Stub.ID, at, n, true)
			rule = NotConverted
		}
		c.add(rule, at, site.Stub.ID, "%s; convert the object before it is linked", describeSite(site.Stub, site.Change.Site.Form))
		c.addStubUse(site.Stub, objects, at)
	}
	for i := range plan.Refused {
		refused := &plan.Refused[i]
		at := image.Addr{Section: refused.Relocs.Target, Offset: refused.Reloc.Offset}
		rule := RefusedCall
		if r, ok := errors.AsType[*arch.Refusal](refused.Err); ok && r.Address {
			rule = StubAddress
		}
		c.add(rule, at, refused.Stub.ID, "%s against %s: %v", plan.RelocName(refused.Reloc.Type), refused.Stub.Name, refused.Err)
		c.addStubUse(refused.Stub, objects, at)
	}
}

// describeSite returns what a site does.
func describeSite(stub *patch.Stub, form arch.Form) string {
	return [...]string{arch.Call: "calls ", arch.Tail: "jumps to ", arch.CondTail: "jumps to ", arch.Nop: "marks a nop for "}[form] + stub.Name
}

// addStubUse notes that the object needs a stub's probe.
func (c *fileChecker) addStubUse(stub *patch.Stub, objects *patch.ProbeObjects, at image.Addr) {
	if c.stubSite(stub.ID, at); c.err != nil {
		return
	}
	if stub.Kind == arch.Probe {
		c.calls = append(c.calls, probeCall{stub.ID, at})
	}
	if objects.Local(stub) {
		c.scope.usedIDs[stub.ID] = true
	} else if name := objects.Name(stub); !c.link.knowsUse(name, c.index) {
		c.link.addUse(name, use{finding: c.finding(UndefinedProbe, at, stub.ID, "")})
	}
}

// `dtrace -G` disables sites in objects, and writes an object that describes them to the kernel
// and refers to their functions by aliases. A later run of -G for other objects, with the same
// output, overwrites that description, and then nothing arms the first sites.

// dofSite is a site that -G has disabled.
type dofSite struct {
	finding         Finding // what it is if no DOF names it
	function, alias string
}

// dofEdits checks what `dtrace -G` has edited, in an object or an image.
func (c *fileChecker) dofEdits() {
	if !c.relocatable() {
		c.dofImage()
		return
	}
	isDOF := func(sec *elfreloc.Section) bool { return sec.Name == dof.SectionName }
	c.fail(c.EachRelocationOf(isDOF, func(_ int, r elfreloc.Relocation) error {
		c.link.dofReferences[c.symbols().Name(int(r.Sym))] = true
		return nil
	}))
	c.headerCalls()
	for s := range c.sitesFrom(sites.FromEdit) {
		if c.stubSite(s.Edit.Stub.ID, s.Address); c.err != nil {
			return
		}
		if s.Kind == arch.Enabled && !c.Machine.Traits().DOF.Tests {
			continue // no kernel arms it, and -G has said so
		}
		c.link.dofSites = append(c.link.dofSites, dofSite{c.finding(MissingDOF, s.Address, s.Edit.Stub.ID, ""), s.Edit.Function, s.Edit.Alias})
	}
	for _, mark := range c.space.Faults.Edits {
		at := image.Addr{Section: mark.Relocs.Target, Offset: mark.Reloc.Offset}
		c.add(UnknownSite, at, mark.Stub.ID, "was disabled by dtrace -G, and no longer has a form of that")
	}
}

// headerCalls finds the references of code to stubs that headers of provider files declare for FreeBSD and illumos. In an object that was given to
// dtrace -G there are none left.
func (c *fileChecker) headerCalls() {
	names := c.set.opts.Names
	stub := func(symbol uint32) (name, id string) {
		s := c.symbols().At(int(symbol))
		for _, prefix := range []string{"__dtrace_", "__dtraceenabled_"} {
			if id, ok := strings.CutPrefix(s.Name, prefix); ok && s.Section == 0 && strings.Contains(id, "___") && !names.IsStub(s.Name) && !strings.HasPrefix(s.Name, patch.GuardPrefix) {
				return s.Name, id
			}
		}
		return "", ""
	}
	if !c.namesContain([]byte("__dtrace_"), []byte("__dtraceenabled_")) {
		return
	}
	none := c.Machine.Traits().None
	c.fail(c.EachRelocationOf((*elfreloc.Section).Executable, func(target int, r elfreloc.Relocation) error {
		if r.Type == none || int(r.Sym) >= c.symbols().Len() {
			return nil
		}
		if name, id := stub(r.Sym); name != "" {
			c.add(LiveCall, image.Addr{Section: target, Offset: r.Offset}, id, "refers to %s; give the object to provider -G (dtrace -G) before it is linked", name)
		}
		return nil
	}))
}

// missingDOF finds the sites in objects that no DOF of the link names.
func (l *link) missingDOF() {
	for i := range l.dofSites {
		if e := &l.dofSites[i]; !l.dofReferences[e.alias] && !l.dofReferences[e.function] {
			l.add(e.finding, MissingDOF, "dtrace -G has disabled it, and no object of the link tells the kernel of it; run -G once, for all objects of the link")
		}
	}
}

// dofFunction returns the function of a site: by a symbol, or else as the DOF names it.
func (c *fileChecker) dofFunction(at image.Addr, described string) string {
	if place := c.function(at); place.Known() && !place.NoSymbol {
		return place.Function
	}
	return described
}

// dofImage records the sites that the DOF of an image describes, and finds the functions that have
// an alias and no described site.
func (c *fileChecker) dofImage() {
	for s := range c.sitesFrom(sites.FromDOF) {
		probe := c.probe(s)
		function := probe.Function
		probe.Function, probe.Args = "", nil
		c.addSite(probe, s.Address, c.dofFunction(s.Address, function))
	}
	var siteAddrs []uint64
	for i := range c.space.DOF {
		for _, s := range c.space.DOF[i].Sites {
			siteAddrs = append(siteAddrs, s.Addr.Offset)
		}
	}
	slices.Sort(siteAddrs)
	if !c.namesContain([]byte(dof.AliasPrefix)) {
		return
	}
	for _, s := range c.symbols().WithPrefix(dof.AliasPrefix) {
		if s.Section <= 0 || s.Type != elf.STT_FUNC || s.Size == 0 {
			continue
		}
		if next, _ := slices.BinarySearch(siteAddrs, s.Value); next == len(siteAddrs) || siteAddrs[next]-s.Value >= s.Size {
			c.add(MissingDOF, image.Addr{Offset: s.Value}, "",
				"dtrace -G has disabled sites of this function, and nothing in the file tells the kernel of them; run -G once, for all objects of the link")
		}
	}
}
