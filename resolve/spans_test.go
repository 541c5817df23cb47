package resolve

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
)

// What spans find is what a search through all entries finds.
func TestSpansAgreeWithASlowSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	code := elfreloc.Code{{Start: 10, End: 70}, {Start: 70, End: 100}, {Section: 3, End: 40}}
	for range 2000 {
		var entries []entry
		for range r.IntN(12) {
			c := r.IntN(len(code))
			start := code[c].Start + r.Uint64N(code[c].End-code[c].Start)
			entries = append(entries, entry{start: start, size: 1 + r.Uint64N(40), symbol: uint32(len(entries)), code: c, rank: uint8(r.Uint32N(4))})
		}
		slices.SortFunc(entries, func(a, b entry) int {
			return cmp.Or(cmp.Compare(a.code, b.code), cmp.Compare(a.start, b.start), cmp.Compare(a.rank, b.rank), cmp.Compare(a.symbol, b.symbol))
		})
		s := makeSpans(code, entries)
		for c := range code {
			for off := code[c].Start; off < code[c].End; off++ {
				var want *entry
				for i := range entries {
					e := &entries[i]
					if e.code == c && off >= e.start && off-e.start < e.size && (want == nil || e.start > want.start) {
						want = e
					}
				}
				if got := s.find(code[c].Section, off); got != want {
					t.Fatalf("%v: %d+%d is in %+v, want %+v", entries, code[c].Section, off, got, want)
				}
			}
		}
	}
}

// A million functions within each other, which all end at once, or all start at
// once, cost no look-up more than others do: else this test would not end.
func TestDeepNesting(t *testing.T) {
	const n = 1 << 20
	code := elfreloc.Code{{End: 4 * n}}
	for name, nested := range map[string]func(i int) entry{
		"one end":   func(i int) entry { return entry{start: uint64(i), size: uint64(2*n - i)} },
		"one start": func(i int) entry { return entry{size: uint64(i) + 1} },
		"pyramid":   func(i int) entry { return entry{start: uint64(i), size: uint64(2*n - 2*i)} },
	} {
		var entries []entry
		for i := range n {
			entries = append(entries, nested(i))
		}
		s := makeSpans(code, entries)
		for off := range uint64(4 * n) {
			if e := s.find(0, off); e != nil && off-e.start >= e.size {
				t.Fatalf("%s: %d is in %+v", name, off, e)
			}
		}
	}
}

func TestFold(t *testing.T) {
	const uniq = ".__uniq.161155198394018592638118035658190273149"
	for _, c := range []struct{ raw, want string }{
		{"f", "f"}, {"f.cold", "f"}, {"f.cold.12", "f"}, {"f.part.0", "f"}, {"f.isra.0", "f"}, {"f.constprop.3", "f"},
		{"f.lto_priv.0", "f"}, {"f.llvm.17438574835839372", "f"}, {"f.__part.1", "f"},
		{"f.constprop.0.isra.0.cold", "f"}, {"f.isra.0.part.1.cold.2", "f"}, {"f.llvm.12.cold", "f"},
		{"_ZN1a1fEv.isra.0.cold", "_ZN1a1fEv"}, {"f.g.isra.0", "f.g"},
		{"_ZL1fi" + uniq, "f"}, {"_ZL6helperP4pair" + uniq + ".llvm.1.cold", "helper"}, {"f" + uniq, "f"},
		{"_ZL9fi" + uniq, "_ZL9fi"}, {"_ZL0" + uniq, "_ZL0"}, {"_ZL99999999999999999999f" + uniq, "_ZL99999999999999999999f"},
		{"_ZL1fi", "_ZL1fi"}, {"_ZL1fi.cold", "_ZL1fi"},
		// What only looks alike.
		{"", ""}, {".", "."}, {".cold", ".cold"}, {"cold", "cold"}, {".part.0", ".part.0"}, {"part.0", "part.0"}, {"f.1", "f.1"},
		{"f.part", "f.part"}, {"f.part.x", "f.part.x"}, {"f.part.1x", "f.part.1x"}, {"f.part.", "f.part."}, {"f.colder", "f.colder"},
		{"f.cold.x", "f.cold.x"}, {"f.parts.0", "f.parts.0"}, {"f.__uniq", "f.__uniq"}, {"f._omp_fn.0", "f._omp_fn.0"},
		{"main.init.0", "main.init.0"}, {"main.part.func1", "main.part.func1"}, {"f.cold.isra", "f.cold.isra"},
	} {
		expect.Equal(t, c.want, fold(c.raw, false), "%q", c.raw)
	}
}

// In Go, p.cold is a function. C code in a Go program has clones all the same.
func TestFoldInGo(t *testing.T) {
	for raw, want := range map[string]string{"p.cold": "p.cold", "p.T.cold": "p.T.cold", "f.isra.0": "f", "f.cold.0": "f"} {
		expect.Equal(t, want, fold(raw, true), "%q", raw)
	}
}

func TestDemangle(t *testing.T) {
	for name, want := range map[string]string{
		"": "", "main": "main", "_Z": "_Z", "_Zzz": "_Zzz", "_R": "_R", "_RUNTIME": "_RUNTIME",
		"_ZN4pool5Arena5resetEPKcj":                           "pool::Arena::reset(char const*, unsigned int)",
		"_ZNSt6vectorIiSaIiEE9push_backEOi":                   "std::vector<int, std::allocator<int> >::push_back(int&&)",
		"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE":      "core::fmt::Formatter::pad",
		"_RNvCs1234_7mycrate3foo":                             "mycrate::foo",
		"_ZN1a1fEv.cold":                                      "a::f() [clone .cold]",
		"_Z" + strings.Repeat("1", maxMangled):                "_Z" + strings.Repeat("1", maxMangled),
		"_Z1f" + strings.Repeat("P", 100_000) + "i":           "_Z1f" + strings.Repeat("P", 100_000) + "i",
		"_Z1fIiE" + strings.Repeat("X", maxMangled/2) + "vi.": "_Z1fIiE" + strings.Repeat("X", maxMangled/2) + "vi.",
	} {
		if got := Demangle(name); got != want {
			t.Errorf("%.80q is demangled to %.200q, want %.80q", name, got, want)
		}
	}
}

// Names made to blow a demangler up take no room, and an end.
func TestDemangleIsBounded(t *testing.T) {
	doubled := "_Z1fI" // f<X<X<...>, X<...>>>: each substitution is twice the last
	for i := range 30 {
		doubled += "1XI" + map[bool]string{true: "i", false: "S" + strings.ToUpper(string(rune('0'+i%10))) + "_"}[i == 0]
	}
	const n = maxMangled - 16
	for _, name := range []string{
		doubled,
		"_Z1f" + strings.Repeat("P", n), "_Z1f" + strings.Repeat("P", n) + "i", "_Z1f" + strings.Repeat("F", n),
		"_Z1f" + strings.Repeat("1XI", n/3), "_ZN" + strings.Repeat("1a", n/2) + "E", "_Z1fIJ" + strings.Repeat("J", n),
		"_Z" + strings.Repeat("Z", n), "_Z1fDT" + strings.Repeat("pl", n/2), "_Z1f" + strings.Repeat("A1_", n/3) + "i",
		"_Z1f" + strings.Repeat("i", n/4) + strings.Repeat("S_", n/4), "_Z1fPFii" + strings.Repeat("S0_", n/3),
		"_R" + strings.Repeat("Nv", n/2), "_RINv" + strings.Repeat("T", n), "_RNvC1a1b" + strings.Repeat("B_", n/2),
	} {
		if got := Demangle(name); len(got) > 1<<20 {
			t.Errorf("%.40q becomes %d bytes", name, len(got))
		}
	}
}

func FuzzDemangle(f *testing.F) {
	f.Add("_ZNSt6vectorIiSaIiEE9push_backEOi")
	f.Add("_RNvCs1234_7mycrate3foo")
	f.Add("_ZL6helperP4pair.__uniq.12.llvm.1.cold")
	f.Fuzz(func(t *testing.T, name string) {
		if got := Demangle(name); len(got) > len(name)+1<<20 {
			t.Errorf("%q becomes %d bytes", name, len(got))
		}
		if got := fold(name, false); !strings.HasPrefix(name, got) && !strings.HasPrefix(name, "_ZL") || got == "" && name != "" {
			t.Errorf("%q is folded to %q", name, got)
		}
	})
}
