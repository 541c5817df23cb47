package check

import (
	"errors"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/emit/usdt"
	"sdtconvert/patch"
)

// calls checks the references to stubs in an object: each is a call that is
// still to be converted, or what cannot be.
func (c *fileChecker) calls() (*patch.Scan, error) {
	opts := &c.set.opts
	scan, err := patch.Find(c.Object.Object, c.Machine, opts.Names)
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
	for _, site := range plan.Sites {
		at := site.Addr()
		c.liveSites[at] = true
		if site.Change.Site.Form == arch.Nop {
			n, _ := usdt.Operands(site.Operands)
			if err := c.count(site.Stub.ID, at, n); err != nil {
				return nil, err
			}
		}
		if err := c.add(LiveCall, at, site.Stub.ID, "%s; convert the object before it is linked", describeSite(site.Stub, site.Change.Site.Form)); err != nil {
			return nil, err
		}
		if err := c.use(site.Stub, objects, at); err != nil {
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
		if err := c.add(rule, at, refused.Stub.ID, "%s against %s: %v", plan.RelocName(refused.Reloc.Type), refused.Stub.Name, refused.Err); err != nil {
			return nil, err
		}
		if err := c.use(refused.Stub, objects, at); err != nil {
			return nil, err
		}
	}
	return scan, nil
}

// describeSite returns what a site does.
func describeSite(stub *patch.Stub, form arch.Form) string {
	return [...]string{arch.Call: "calls ", arch.Tail: "jumps to ", arch.CondTail: "jumps to ", arch.Nop: "marks a nop for "}[form] + stub.Name
}

// use notes that the object needs a stub's probe.
func (c *fileChecker) use(stub *patch.Stub, objects *patch.ProbeObjects, at image.Addr) error {
	if err := c.stubSite(stub.ID, at); err != nil {
		return err
	}
	if objects.Local(stub) {
		c.link.usedIDs[scopedID{allObjects, stub.ID}] = true
		return nil
	}
	if c.link.knowsUse(objects.Name(stub), c.index) {
		return nil
	}
	f, err := c.finding(UndefinedProbe, at, stub.ID, "")
	if err == nil {
		c.link.use(objects.Name(stub), use{finding: *f})
	}
	return err
}
