package check

import (
	"errors"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/emit/usdt"
	"sdtconvert/patch"
)

// calls looks at the references to stubs of an object: each is a call that is
// still to be converted, or what cannot be.
func (l *fileChecker) calls() (*patch.Scan, error) {
	opts := &l.set.opts
	scan, err := patch.Find(l.Object.Object, l.Machine, opts.Names)
	if err != nil {
		return nil, err
	}
	plan, err := patch.NewPlan(scan, patch.Options{Names: opts.Names, ProbePrefix: opts.ProbePrefix})
	if err != nil || len(scan.Calls)+len(scan.Refused) == 0 {
		return scan, err
	}
	objects, err := scan.ProbeObjects(opts.ProbePrefix)
	if err != nil {
		return nil, err
	}
	for i := range plan.Sites {
		site := &plan.Sites[i]
		at := image.Addr{Section: site.Relocs.Target, Offset: site.Change.Site.Offset}
		l.live[at] = true
		if site.Change.Site.Form == arch.Nop {
			n, _ := usdt.Operands(site.Operands)
			if err := l.count(site.Stub.ID, at, n); err != nil {
				return nil, err
			}
		}
		if err := l.add(LiveCall, at, site.Stub.ID, "%s; convert the object before it is linked", calls(site.Stub, site.Change.Site.Form)); err != nil {
			return nil, err
		}
		if err := l.use(site.Stub, objects, at); err != nil {
			return nil, err
		}
	}
	for i := range plan.Refused {
		refused := &plan.Refused[i]
		at := image.Addr{Section: refused.Relocs.Target, Offset: refused.Reloc.Offset}
		rule := RefusedCall
		if r := (*arch.Refusal)(nil); errors.As(refused.Err, &r) && r.Address {
			rule = StubAddress
		}
		if err := l.add(rule, at, refused.Stub.ID, "%s against %s: %v", plan.RelocName(refused.Reloc.Type), refused.Stub.Name, refused.Err); err != nil {
			return nil, err
		}
		if err := l.use(refused.Stub, objects, at); err != nil {
			return nil, err
		}
	}
	return scan, nil
}

// calls says what a site does.
func calls(stub *patch.Stub, form arch.Form) string {
	return [...]string{arch.Call: "calls ", arch.Tail: "jumps to ", arch.CondTail: "jumps to ", arch.Nop: "marks a nop for "}[form] + stub.Name
}

// use notes that the object needs a stub's probe.
func (l *fileChecker) use(stub *patch.Stub, objects patch.ProbeObjects, at image.Addr) error {
	if err := l.stubSite(stub.ID, at); err != nil {
		return err
	}
	if objects.Local(stub) {
		l.link.usedIDs[scopedID{allObjects, stub.ID}] = true
		return nil
	}
	if l.link.knowsUse(objects.Name(stub), l.index) {
		return nil
	}
	f, err := l.finding(UndefinedProbe, at, stub.ID, "")
	if err == nil {
		l.link.use(objects.Name(stub), use{finding: *f})
	}
	return err
}
