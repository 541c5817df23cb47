package linkerset_test

import (
	"fmt"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
)

// conflict says what an earlier conversion in one layout is to a later one in
// another: "" when they are the same.
func conflict(earlier, later linkerset.Layout) string {
	switch {
	case earlier == later:
		return ""
	case earlier.Name != "" && earlier.Name != later.Name, earlier.Format == later.Format:
		return "another --section"
	}
	return "--layout " + earlier.Format.String()
}

func TestEarlierRecordsOfEveryOtherLayoutAreAConflict(t *testing.T) {
	layouts := append(everyLayout(t), parse(t, "pairs", "yours"), parse(t, "relative", "yours"), parse(t, "freebsd", "yours"))
	for _, earlier := range layouts {
		after, _ := convert(t, objects.Read(t, "forms.riscv64-gcc12-as.o"), earlier, false)
		for _, later := range layouts {
			o, m := open(t, after)
			found, err := later.CheckEarlier(o, m)
			want := conflict(earlier, later)
			if want == "" {
				if err != nil || !found {
					t.Errorf("%v again: %v, %v", earlier, found, err)
				}
				continue
			}
			texts := map[string]bool{}
			for _, section := range []string{earlier.Section(0), earlier.Section(1), "sdt_instances", earlier.Name + "_structs"} {
				texts[fmt.Sprintf("a.o: %s: the object was converted before with %s; convert it as it was compiled, or with the same flags", section, want)] = true
			}
			if err == nil || !texts[err.Error()] {
				t.Errorf("%v after %v: %v, want a conflict with %s", later, earlier, err, want)
			}
		}
	}
}

func TestNoRecordsAreNoConflict(t *testing.T) {
	for _, object := range []string{"calls.amd64-gcc12-O2.o", "none.amd64-gcc12-g.o", "locals.amd64-clang19-O2.o", "calls.i386-gcc12-O2.o"} {
		for _, l := range everyLayout(t) {
			o, m := open(t, objects.Read(t, object))
			if found, err := l.CheckEarlier(o, m); found || err != nil {
				t.Errorf("%s: %v, %v", object, found, err)
			}
		}
	}
}

// Code keeps its records alive, unless its relocations were dropped.
func TestKeptAlive(t *testing.T) {
	for _, drop := range []bool{false, true} {
		l := parse(t, "pairs", "")
		after, _ := convert(t, objects.Read(t, "calls.arm64-gcc12-O2.o"), l, drop)
		o, m := open(t, after)
		kept := expect.Value(linkerset.AnchoredSections(o, m))(t)
		for i := range o.Sections {
			if _, ok := l.IsRecordSection(&o.Sections[i]); kept[i] != (ok && !drop) {
				t.Errorf("dropped %v: section %s is kept alive: %v", drop, o.Sections[i].Name, kept[i])
			}
		}
	}
}

// Records in sections of other names are found in the objects of each machine.
func TestRecordsOfOtherNamesAreFound(t *testing.T) {
	machines := map[string]int{}
	for _, file := range objects.ELF(t, "calls.", "forms.") {
		for _, l := range everyLayout(t) {
			after, plan := convert(t, file.Data, l, false)
			if plan == nil || l.Name == "" {
				continue
			}
			o, m := open(t, after)
			found, err := linkerset.ForeignLayouts(o, m, nil, []string{"sdt_"})
			if err != nil || len(found) != 1 || found[0] != l {
				t.Errorf("%s: found %v, %v, want %v", file.Name, found, err, l)
			}
			machines[m.Traits().Name]++
		}
	}
	if len(machines) < 9 {
		t.Errorf("objects of %v", machines)
	}
}
