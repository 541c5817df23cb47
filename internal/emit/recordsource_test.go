package emit

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/patch"
)

// sectionOf makes a section with symbols at offsets; a weak one's name ends in ?.
func sectionOf(bases map[string]uint64, deletions ...uint64) *recordSection {
	s := &recordSection{deletions: deletions}
	for name, value := range bases {
		plain := strings.TrimSuffix(name, "?")
		s.bases = append(s.bases, baseSymbol{plain, value, plain != name})
	}
	slices.SortFunc(s.bases, compareBases)
	return s
}

func TestBase(t *testing.T) {
	const others = "defined in several objects"
	for _, c := range []struct {
		name    string
		section *recordSection
		want    string
	}{
		{"nothing", sectionOf(nil), "its section has no global symbol"},
		{"at the site", sectionOf(map[string]uint64{"f": 100}), "f"},
		{"nearest before", sectionOf(map[string]uint64{"f": 10, "g": 90, "h": 101}), "g"},
		{"only behind", sectionOf(map[string]uint64{"f": 101, "g": 102}), "f"},
		{"of equals the strong one", sectionOf(map[string]uint64{"a?": 10, "b": 10, "c": 10}), "b"},
		{"weak and alone", sectionOf(map[string]uint64{"a?": 10}), "a"},
		{"weak, and another object's too", sectionOf(map[string]uint64{"two?": 10}), others},
		{"strong, and weak elsewhere", sectionOf(map[string]uint64{"two": 10}), "two"},
		{"a weak one is passed over", sectionOf(map[string]uint64{"f": 10, "two?": 50}), "f"},
		{"deletions elsewhere", sectionOf(map[string]uint64{"f": 50}, 10, 100, 200), "f"},
		{"a deletion before", sectionOf(map[string]uint64{"f": 50, "g": 150}, 50), "g"},
		{"deletions around", sectionOf(map[string]uint64{"f": 50, "g": 150}, 99, 100), "-mno-relax"},
		{"a deletion at the site", sectionOf(map[string]uint64{"g": 150}, 100), "-mno-relax"},
	} {
		l := &RecordList{count: map[string]int{"two": 2}, groups: map[string]int{"copied": 2}}
		for _, b := range c.section.bases {
			l.count[b.name] = max(l.count[b.name], 1)
		}
		l.sift(c.section)
		b, err := c.section.base(100)
		switch {
		case err != nil && !strings.Contains(err.Error(), c.want):
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		case err == nil && b.name != c.want:
			t.Errorf("%s: %s, want %q", c.name, b.name, c.want)
		}
	}
}

// All copies of a group define its symbols, and nothing else may.
func TestBaseInGroups(t *testing.T) {
	l := &RecordList{count: map[string]int{"copied": 2, "strange": 3}, groups: map[string]int{"copied": 2}}
	s := sectionOf(map[string]uint64{"copied?": 10, "strange?": 20})
	s.signature = "copied"
	l.sift(s)
	if b, err := s.base(100); err != nil || b.name != "copied" {
		t.Errorf("%+v, %v", b, err)
	}
}

// A function of another instruction set than the usual one names nothing but itself.
func TestBaseOfAnotherInstructionSet(t *testing.T) {
	data := objects.Read(t, "existing.thumb-clang19-O2.o")
	o := expect.Value(elfreloc.Open(bytes.NewReader(data), int64(len(data)), "thumb.o"))(t)
	l := NewRecordList(patch.Options{FixedLayout: true})
	expect.OK(t, l.Add(o, machines.Lookup(o.ABI())))
	_, errs := l.Source()
	const want = `thumb.o: .text+0x4: in existing_user+0x4: a site of "sdt_existing___probe" that no other object can name: what is named by "existing_user" is not of the usual instruction set; compile for that, or convert the object`
	if len(errs) != 4 || errs[0].Error() != want {
		t.Errorf("%q", errs)
	}
}
