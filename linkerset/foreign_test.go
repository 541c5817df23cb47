package linkerset_test

import (
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/linkerset"
)

// Records of another name are found if code keeps them alive, or if their probe objects have the
// prefix, and not if neither is so.
func TestRecordsOfOtherNamesAreAnchoredOrNamed(t *testing.T) {
	l := parse(t, "pairs", "mine")
	for _, drop := range []bool{false, true} {
		for _, prefix := range []string{"sdt_", "other_"} {
			after, _ := convert(t, objects.Read(t, "calls.amd64-gcc12-O2.o"), l, drop)
			o, m := open(t, after)
			found := expect.Value(linkerset.ForeignLayouts(o, m, nil, []string{prefix}))(t)
			var want []linkerset.Layout
			if !drop || prefix == "sdt_" {
				want = []linkerset.Layout{l}
			}
			expect.Equal(t, want, found, "dropped relocations %v, prefix %s", drop, prefix)
			found = expect.Value(linkerset.ForeignLayouts(o, m, []linkerset.Layout{l}, []string{prefix}))(t)
			expect.Equal(t, nil, found, "where the layout is known")
			expect.Equal(t, nil, expect.Value(linkerset.ForeignLayouts(o, nil, nil, []string{prefix}))(t), "of an unknown machine")
		}
	}
}

// Records of a later version are an error of each layout.
func TestEarlierRecordsOfLaterVersion(t *testing.T) {
	o, m := open(t, objects.Read(t, "calls.amd64-gcc12-O2.o"))
	o.Sections = append(o.Sections, elfreloc.Section{Name: "sdt_instances2_set"})
	for _, l := range everyLayout(t) {
		_, err := l.CheckEarlier(o, m)
		if err == nil || !strings.Contains(err.Error(), "records of version 2") {
			t.Errorf("%v: %v", l, err)
		}
	}
}
