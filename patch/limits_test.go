package patch

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// Names are counted at each use, references and stubs by their number.
func TestLimits(t *testing.T) {
	o := &elfreloc.Object{Name: "a.o", Sections: []elfreloc.Section{{}, {Name: ".rela.text"}}}
	rs := &elfreloc.RelocSection{Index: 1}
	for _, c := range []struct {
		what, want string
		count      func(l *limits) error
	}{
		{"a long name", "has a name of 16385 bytes", func(l *limits) error { return l.stub(o, strings.Repeat("x", maxStubName+1)) }},
		{"names of many stubs", "16 times as many bytes as the object", func(l *limits) error { return l.stub(o, strings.Repeat("x", maxStubName)) }},
		{"a name that is used often", "16 times as many bytes as the object", func(l *limits) error {
			return l.reference(o, rs, &Stub{Name: strings.Repeat("x", 100)})
		}},
		{"references", ".rela.text: more than 1048576 references", func(l *limits) error { return l.reference(o, rs, nil) }},
		{"stubs", "more than 131072 stubs", func(l *limits) error { return l.stub(o, "s") }},
	} {
		l := newLimits(o)
		var err error
		for range maxReferences + 1 {
			if err = c.count(&l); err != nil {
				break
			}
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "a.o: ") {
			t.Errorf("%s: %v, want %s", c.what, err, c.want)
		}
	}
}

// Of many refusals the last tells how many more there are.
func TestManyRefusals(t *testing.T) {
	p := &planner{Plan: &Plan{}}
	cause := errors.New("no call")
	for range maxRefused + 5 {
		p.refuse(&Reference{}, cause)
	}
	p.countOmitted()
	last := p.Refused[len(p.Refused)-1].Err
	if len(p.Refused) != maxRefused || !errors.Is(last, cause) || fmt.Sprint(last) != "no call; 5 more references cannot be converted either" {
		t.Errorf("%d refusals, the last %v", len(p.Refused), last)
	}
}

// TestMappingsOfOnePlace sorts mapping symbols: by offset, and data before code, which counts.
func TestMappingsOfOnePlace(t *testing.T) {
	data, code, thumb := arch.Mapping{Encoding: arch.Data}, arch.Mapping{Encoding: 'x'}, arch.Mapping{Encoding: 't'}
	later := arch.Mapping{Offset: 4, Encoding: arch.Data}
	for _, c := range []struct{ in, want []arch.Mapping }{
		{[]arch.Mapping{code, data}, []arch.Mapping{data, code}},
		{[]arch.Mapping{data, code}, []arch.Mapping{data, code}},
		{[]arch.Mapping{code, thumb}, []arch.Mapping{code, thumb}},
		{[]arch.Mapping{later, thumb, data}, []arch.Mapping{data, thumb, later}},
		{[]arch.Mapping{later, code, data, thumb}, []arch.Mapping{data, code, thumb, later}},
	} {
		got := slices.Clone(c.in)
		sortStable(got, compareMappings)
		expect.Equal(t, c.want, got, "%v", c.in)
	}
}
