package machines_test

import (
	"bytes"
	"errors"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/expect"
)

// What DisableDOF makes of a site is found again at its relocation, and nothing of it
// changes then. No kind is taken for the other.
func TestDOFFormsAreFoundAgain(t *testing.T) {
	some := false
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		d, ok := m.(arch.DOFMachine)
		expect.Equal(t, m.Traits().DOF.Distance != 0, ok, "has forms, with the traits %+v", m.Traits().DOF)
		if !ok {
			return
		}
		some = true
		for _, s := range c.sites {
			for k := range arch.Kinds {
				for _, filler := range fillers {
					checkDOF(t, d, s, k, filler)
				}
			}
		}
	})
	if !some {
		t.Error("no machine has any")
	}
}

func checkDOF(t *testing.T, d arch.DOFMachine, s *siteCase, k arch.Kind, filler []byte) {
	text, off := placed(s.code, filler)
	text = s.mapped(text)
	field := s.at(off)[0].Offset
	if site, ok := d.DisabledDOF(text, field, k); ok && s.form != arch.Nop {
		t.Errorf("%s is a disabled form before it is one: %+v", s.name, site)
	}
	change, err := d.DisableDOF(expect.Value(d.Decode(text, s.at(off)))(t), k)
	if err != nil {
		if !errors.As(err, new(*arch.Refusal)) {
			t.Errorf("%s: %v", s.name, err)
		}
		return
	}
	if change.Target != arch.TargetNone {
		if k == arch.Probe || d.Traits().DOF.Tests {
			t.Errorf("%s: %+v", s.name, change)
		}
		return
	}
	if len(change.New) != len(s.code) || change.RecordedOffset < off || change.RecordedOffset-off >= uint64(len(s.code)) {
		t.Errorf("%s: %+v", s.name, change)
	}
	text.Code = bytes.Clone(text.Code)
	copy(text.Code[off-text.Start:], change.New)
	found, ok := d.DisabledDOF(text, field, k)
	if !ok || found.Offset != off || found.Form != s.form || found.GOT != s.got || !bytes.Equal(found.Code, change.New) {
		t.Errorf("%s as % x: found %+v, %v", s.name, change.New, found, ok)
	}
	if again, err := d.DisableDOF(found, k); err != nil || !bytes.Equal(again.New, change.New) || again.RecordedOffset != change.RecordedOffset {
		t.Errorf("%s: % x at %#x becomes % x at %#x, %v", s.name, change.New, change.RecordedOffset, again.New, again.RecordedOffset, err)
	}
	if k == arch.Probe || d.Traits().DOF.Tests {
		recorded, ok := d.RecordedDOF(text, change.RecordedOffset, k)
		if !ok || recorded.Offset != off || recorded.Form != s.form || !bytes.Equal(recorded.Code, change.New) {
			t.Errorf("%s as % x: %#x is of %+v, %v", s.name, change.New, change.RecordedOffset, recorded, ok)
		}
	}
	for other := range arch.Kinds {
		if _, ok := d.DisabledDOF(text, field, other); ok && other != k {
			t.Errorf("%s: % x is of both kinds", s.name, change.New)
		}
	}
}
