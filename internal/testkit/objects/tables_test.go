package objects_test

import (
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/internal/testkit/objects"
)

// A new machine adds an object to those whose tables are damaged.
func TestOfEachMachineThereIsAnObject(t *testing.T) {
	found := map[string]bool{}
	for _, name := range objects.OfEachMachine {
		data := objects.Read(t, name)
		m := machines.Lookup(objects.Open(t, data).ABI())
		if m == nil {
			t.Fatalf("%s is of no machine that is known", name)
		}
		if len(objects.Tables(t, data)) < 3 {
			t.Errorf("%s has hardly any table", name)
		}
		found[m.Traits().Name] = true
	}
	for _, m := range machines.All() {
		if !found[m.Traits().Name] {
			t.Errorf("%s is missing in OfEachMachine", m.Traits().Name)
		}
	}
}
