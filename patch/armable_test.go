package patch_test

import (
	"bytes"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
	"sdtconvert/patch"
)

// FreeBSD's layout has the forms of --stapsdt where a breakpoint goes, at calls and tail
// calls of probes, and those of the other layouts at is-enabled tests, which load no
// semaphore there. On machines where a site is a whole instruction all forms are the same.
func TestFreeBSDFormsAreArmable(t *testing.T) {
	compared, different := 0, 0
	for _, f := range objects.ELF(t, "calls.") {
		if machines.Lookup(objects.Open(t, f.Data).ABI()) == nil {
			continue
		}
		plain := planOf(t, f.Name, patch.Options{})
		freebsd := planOf(t, f.Name, patch.Options{Layout: linkerset.Layout{Format: linkerset.FreeBSD}})
		stapsdt := planOf(t, f.Name, patch.Options{Stapsdt: true})
		if len(stapsdt.Refused) > 0 { // tests through registers, which have no room for a semaphore
			continue
		}
		for i := range freebsd.Sites {
			s, want, from := freebsd.Sites[i], plain.Sites[i], "plain"
			if s.Stub.Kind == arch.Probe {
				want, from = stapsdt.Sites[i], "--stapsdt"
			}
			if !bytes.Equal(s.Change.New, want.Change.New) || s.Change.RecordedOffset != want.Change.RecordedOffset || s.Change.Target != want.Change.Target {
				t.Errorf("%s: %+v\nis not the form of %s: %+v", f.Name, s.Change, from, want.Change)
			}
			compared++
			if !bytes.Equal(s.Change.New, plain.Sites[i].Change.New) {
				different++
				if s.Change.New[s.Change.RecordedOffset-s.Change.Site.Offset] != 0x90 {
					t.Errorf("%s: %x has no nop at its record", f.Name, s.Change.New)
				}
			}
		}
	}
	if compared < 100 || different < 20 {
		t.Errorf("%d sites compared, %d with a form of their own", compared, different)
	}
}
