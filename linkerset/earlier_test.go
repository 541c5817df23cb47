package linkerset_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/linkerset"
)

// conflict says what an earlier conversion in one layout is to a later one in
// another: "" when they are the same.
func conflict(earlier, later linkerset.Layout) string {
	switch {
	case earlier == later:
		return ""
	case earlier.Format == later.Format:
		return "another --section"
	}
	return "--layout " + earlier.Format.String()
}

func TestEarlierRecordsOfEveryOtherLayoutAreAConflict(t *testing.T) {
	layouts := append(everyLayout(t), parse(t, "pairs", "yours"), parse(t, "relative", "yours"), parse(t, "freebsd", "yours"))
	for _, earlier := range layouts {
		after, _ := convert(t, objects.Read(t, "forms.riscv64-gcc12-as.o"), earlier, false)
		for _, later := range layouts {
			if earlier.Name != "" && earlier.Name != later.Name {
				continue // only --section knows the name
			}
			o, _ := open(t, after)
			found, err := later.CheckEarlier(o)
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
			o, _ := open(t, objects.Read(t, object))
			if found, err := l.CheckEarlier(o); found || err != nil {
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

// Records of a later version are an error of each layout.
func TestEarlierRecordsOfLaterVersion(t *testing.T) {
	o, _ := open(t, objects.Read(t, "calls.amd64-gcc12-O2.o"))
	o.Sections = append(o.Sections, elfreloc.Section{Name: "sdt_instances2_set"})
	for _, l := range everyLayout(t) {
		_, err := l.CheckEarlier(o)
		if err == nil || !strings.Contains(err.Error(), "records of version 2") {
			t.Errorf("%v: %v", l, err)
		}
	}
}

// Records of a later version are told from names of others that begin like them.
func TestCheckVersion(t *testing.T) {
	tools.Need(t, "as")
	for name, want := range map[string]string{
		"sdt_instances2_set": "2", "set_sdt_instances12_set": "12", "sdt_isenabled3_rel": "3", "sdt_instances2": "2",
		"sdt_instances_set": "", "sdt_instances1_set": "", "sdt_instances02_set": "", "my_sdt_instances2_set": "", "sdt_instances2_sets": "",
	} {
		source, object := filepath.Join(t.TempDir(), "a.s"), filepath.Join(t.TempDir(), "a.o")
		disk.Write(t, source, ".section "+name+",\"aw\"\n.quad 0\n")
		tools.Must(t, "as", "-o", object, source)
		data := disk.Read(t, object)
		o := expect.Value(elfreloc.Open(strings.NewReader(string(data)), int64(len(data)), "a.o"))(t)
		if want == "" {
			expect.OK(t, linkerset.CheckVersion(o))
		} else {
			expect.Error(t, linkerset.CheckVersion(o), "a.o: "+name+": records of version "+want+", and this program reads version 1; use a later sdtconvert")
		}
	}
}

// named is an image in which these symbols stand everywhere.
type named struct {
	image.Image
	names []string
}

func (n named) SymbolsAt(image.Addr) ([]string, error) { return n.names, nil }

func TestSymbolOfProbeObject(t *testing.T) {
	for _, c := range []struct {
		want  string
		names []string
	}{
		{"", nil},
		{"object", []string{"object", "other"}},
		{"sdt_app___hit", []string{"object", "sdt_app___hit"}},
		{"f.sdt_app___hit.1", []string{"f", "f.sdt_app___hit.1"}},
		// The first object behind the records of tests, or of nothing.
		{"sdt_app___hit", []string{"__stop_sdt_isenabled_set", "sdt_app___hit"}},
		{"f.sdt_app___hit", []string{"__start_sdt_isenabled_set", "__stop_sdt_isenabled_set", "f.sdt_app___hit"}},
	} {
		got := expect.Value(linkerset.NewProbes(named{names: c.names}, "sdt_").Symbol(image.Ref{}))(t)
		expect.Equal(t, c.want, got, "%q", c.names)
	}
}

// TestIDsOfMangledNames compares the ids of probe objects with c++filt, in namespaces and
// functions whose names end as lengths do.
func TestIDsOfMangledNames(t *testing.T) {
	tools.Need(t, "c++filt")
	r := rand.New(rand.NewPCG(1, 5))
	name := func(letters string) string {
		b := []byte{letters[r.IntN(len(letters))]}
		for range r.IntN(14) {
			b = append(b, (letters + "0123456789")[r.IntN(len(letters)+10)])
		}
		return fmt.Sprintf("%d%s", len(b), b)
	}
	var symbols []string
	for range 500 {
		object := "sdt_" + strings.TrimLeft(name("pq_"), "0123456789") + "___" + strings.TrimLeft(name("xy_"), "0123456789")
		object = fmt.Sprintf("%d%s", len(object), object)
		scopes := ""
		for range 1 + r.IntN(3) {
			scopes += name("ab")
		}
		symbols = append(symbols, []string{
			"_ZN" + scopes + object + "E", "_ZN" + scopes + "L" + object + "E", "_ZL" + object,
			"_ZZN" + scopes + "EvE" + object, "_ZZN" + scopes + "EvE" + object + "_1", "_ZZ" + name("ab") + "vE" + object,
		}[r.IntN(6)])
	}
	for i, want := range tools.Lines(t, "c++filt", symbols...) {
		want = want[strings.LastIndex(want, "::")+1:]
		want, _ = strings.CutPrefix(strings.TrimPrefix(want, ":"), "sdt_")
		got := expect.Value(linkerset.NewProbes(named{}, "sdt_").Lookup(image.Ref{Symbol: symbols[i], Undefined: true}))(t)
		expect.Equal(t, want, got.ID, "%s", symbols[i])
	}
}

func TestSplitID(t *testing.T) {
	for id, want := range map[string][2]string{
		"a___b": {"a", "b"}, "a__b___c__d": {"a__b", "c__d"}, "a___b___c": {"a", "b___c"}, "a____b": {"a", "_b"},
		"a": {"sdt", "a"}, "a__b": {"sdt", "a__b"}, "___b": {"sdt", "___b"}, "a___": {"sdt", "a___"}, "": {"sdt", ""},
	} {
		provider, name := linkerset.SplitID(id)
		expect.Equal(t, want, [2]string{provider, name}, "%q", id)
	}
}
