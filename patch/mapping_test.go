package patch_test

import (
	"bytes"
	"errors"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// planWith is planOf of an object some bytes of which are others.
func planWith(t *testing.T, name, old, new string) *patch.Plan {
	t.Helper()
	data := bytes.ReplaceAll(objects.Read(t, name), []byte(old), []byte(new))
	o := objects.Open(t, data)
	scan := expect.Value(patch.Find(o, machines.Lookup(o.ABI()), patch.DefaultNames()))(t)
	return expect.Value(patch.NewPlan(scan, defaults()))(t)
}

// What mapping symbols call data is not code, even where a machine would take it.
func TestSitesInDataWithinCodeAreRefused(t *testing.T) {
	for _, name := range []string{"calls.arm64-gcc12-O2.o", "calls.riscv64-clang19-O0.o"} {
		sites := len(planWith(t, name, "\x00$x\x00", "\x00$x\x00").Sites)
		plan := planWith(t, name, "\x00$x\x00", "\x00$d\x00")
		if sites == 0 || len(plan.Sites) != 0 || len(plan.Refused) != sites {
			t.Fatalf("%s: %d of %d sites are refused", name, len(plan.Refused), sites)
		}
		for _, r := range plan.Refused {
			var refusal *arch.Refusal
			const want = "the stub's address is stored in data within code; do not take the stub's address"
			if !errors.As(r.Err, &refusal) || !refusal.Address || r.Err.Error() != want {
				t.Errorf("%s: got %v", name, r.Err)
			}
		}
	}
}

// Other letters, and symbols that only look like mapping symbols, make no difference.
func TestOtherMappingSymbolsChangeNothing(t *testing.T) {
	const name = "calls.arm64-gcc12-O2.o"
	sites := len(planWith(t, name, "\x00$x\x00", "\x00$x\x00").Sites)
	for _, symbol := range []string{"\x00$t\x00", "\x00$q\x00", "\x00_d\x00", "\x00d$\x00"} {
		if plan := planWith(t, name, "\x00$x\x00", symbol); len(plan.Sites) != sites || len(plan.Refused) != 0 {
			t.Errorf("%q: %d sites of %d", symbol, len(plan.Sites), sites)
		}
	}
}
