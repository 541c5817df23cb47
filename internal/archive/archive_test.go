package archive

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/objects"
)

// headerText makes a header with the fields that this package does not look at, too.
func headerText(name string, size int64) string {
	return fmt.Sprintf("%-16s%-12s%-6s%-6s%-8s%-10d`\n", name, "1234567890", "1000", "100", "100644", size)
}

// file returns a member as it stands in an archive, padded.
func file(name, contents string) string {
	f := headerText(name, int64(len(contents))) + contents
	return f + strings.Repeat("\n", len(f)&1)
}

func bsdFile(name, contents string) string {
	return file(fmt.Sprintf("#1/%d", len(name)), name+contents)
}

// systemV makes an index of pairs of symbol and offset.
func systemV(word int, entries ...entry) string {
	var b []byte
	put := func(v uint64) {
		if word == 8 {
			b = binary.BigEndian.AppendUint64(b, v)
		} else {
			b = binary.BigEndian.AppendUint32(b, uint32(v))
		}
	}
	put(uint64(len(entries)))
	names := ""
	for _, e := range entries {
		put(e.header)
		names += e.name + "\x00"
	}
	return string(b) + names
}

func bsd(order binary.AppendByteOrder, entries ...entry) string {
	var b []byte
	b = order.AppendUint32(b, uint32(8*len(entries)))
	names := ""
	for _, e := range entries {
		b = order.AppendUint32(b, uint32(len(names)))
		b = order.AppendUint32(b, uint32(e.header))
		names += e.name + "\x00"
	}
	names += strings.Repeat("\x00", len(names)&1)
	return string(order.AppendUint32(b, uint32(len(names)))) + names
}

func open(data string) (*Archive, error) {
	return Open(strings.NewReader(data), int64(len(data)), "lib.a")
}

// contents reads an archive: names, contents, and what its index says.
func contents(data string) (members, symbols []string, err error) {
	a, err := open(data)
	if err != nil {
		return nil, nil, err
	}
	names := map[uint64]string{}
	for m, err := range a.Members() {
		if err != nil {
			return nil, nil, err
		}
		names[uint64(m.Header)] = m.Name
		if !a.Thin {
			members = append(members, m.Name+": "+data[m.Start:m.Start+m.Size])
		} else {
			members = append(members, fmt.Sprintf("%s: %d, %d", m.Name, m.Size, m.Origin))
		}
	}
	if a.index == nil {
		return members, nil, nil
	}
	t, err := a.readIndex()
	if err != nil {
		return nil, nil, err
	}
	for _, e := range t.entries {
		symbols = append(symbols, e.name+" in "+names[e.header])
	}
	return members, symbols, nil
}

// replaced gives a member new contents, and symbols.
func replaced(data, name, text string, before, after []string) (string, error) {
	a, err := open(data)
	if err != nil {
		return "", err
	}
	e := a.Edit()
	for m, err := range a.Members() {
		if err != nil {
			return "", err
		}
		if m.Name == name {
			if err := e.Replace(m, Change{Output: textOutput(text), Before: before, After: after}); err != nil {
				return "", err
			}
		}
	}
	return saved(e, data)
}

func textOutput(text string) *elfreloc.Output {
	return &elfreloc.Output{Size: int64(len(text)), Extents: []elfreloc.Extent{{Data: []byte(text), Len: int64(len(text))}}}
}

// output lays the whole archive out.
func (e *Edit) output() (*elfreloc.Output, error) {
	begin, err := e.Begin()
	out := &elfreloc.Output{Extents: append(begin, e.End()...)}
	for _, x := range out.Extents {
		out.Size += x.Len
	}
	return out, err
}

func saved(e *Edit, data string) (string, error) {
	out, err := e.output()
	if err != nil {
		return "", err
	}
	result, err := objects.Assemble(out, []byte(data))
	return string(result), err
}

func TestMembers(t *testing.T) {
	names := file("//", "a_name_of_more_than_15.o/\nanother_of_the_same.o/\n")
	for _, c := range []struct {
		what, data string
		want       []string
	}{
		{"empty", magic, nil},
		{"one", magic + file("a.o/", "abc"), []string{"a.o: abc"}},
		{"no pad byte at the end", magic + headerText("a.o/", 3) + "abc", []string{"a.o: abc"}},
		{"the same name twice", magic + file("a.o/", "a") + file("a.o/", "b"), []string{"a.o: a", "a.o: b"}},
		{"long names", magic + names + file("/0", "x") + file("/26", "y"), []string{"a_name_of_more_than_15.o: x", "another_of_the_same.o: y"}},
		{"long names of Windows", magic + file("//", "one\x00two\x00") + file("/4", ""), []string{"two: "}},
		{"BSD", magic + bsdFile("a b.o", "x") + bsdFile("c.o\x00\x00", "yz"), []string{"a b.o: x", "c.o: yz"}},
		{"BSD without slashes", magic + file("a.o", "x"), []string{"a.o: x"}},
		{"an index alone", magic + file("/", systemV(4)), nil},
		{"thin", thinMagic + file("//", "x/a.o/\nlib.a/\n") + headerText("/0", 99) + headerText("/7:94", 10) + headerText("/7         /", 5),
			[]string{"x/a.o: 99, 0", "lib.a: 10, 94", "lib.a: 5, 0"}},
	} {
		got, _, err := contents(c.data)
		if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
			t.Errorf("%s: %v %s", c.what, err, diff)
		}
	}
}

func TestFaults(t *testing.T) {
	for _, c := range []struct{ what, data, want string }{
		{"no archive", "!<arch", "lib.a: is not an archive"},
		{"cut header", magic + "a.o/", "lib.a: member at offset 0x8: the archive ends within its header, at 0xc"},
		{"no header", magic + strings.Repeat("x", 60), `lib.a: member at offset 0x8: is not a member header: it ends in "xx", want "` + "`" + `\n"`},
		{"size beyond the end", magic + headerText("a.o/", 4) + "abc", "lib.a: member at offset 0x8: is 4 bytes long, and the archive ends 3 bytes behind its header"},
		{"huge size", magic + headerText("a.o/", 9999999999), "lib.a: member at offset 0x8: is 9999999999 bytes long, and the archive ends 0 bytes behind its header"},
		{"negative size", magic + strings.Replace(headerText("a.o/", 10), "10  ", "-1  ", 1), `lib.a: member at offset 0x8: its size is "-1"`},
		{"long name without a table", magic + headerText("/0", 0), "lib.a: member at offset 0x8: its name is at offset 0 of 0 bytes of long names"},
		{"long name behind the table", magic + file("//", "abc/\n") + headerText("/6", 0), "lib.a: member at offset 0x4a: its name is at offset 6 of 5 bytes of long names"},
		{"endless name", magic + file("//", "abcd") + headerText("/0", 0), "lib.a: member at offset 0x48: its name has no end"},
		{"no name", magic + file("//", "/\n") + headerText("/0", 0), "lib.a: member at offset 0x46: has no name"},
		{"blank name", magic + headerText("", 0), "lib.a: member at offset 0x8: has no name"},
		{"no number", magic + headerText("/x", 0), `lib.a: member at offset 0x8: its name is "/x"`},
		{"origin in no thin archive", magic + file("//", "a/\n") + headerText("/0:8", 0), `lib.a: member at offset 0x48: its name is "/0:8"`},
		{"BSD name that is too long", magic + headerText("#1/9", 3) + "abc", `lib.a: member at offset 0x8: its name is "#1/9", of 3 bytes`},
		{"BSD name in a thin archive", thinMagic + headerText("#1/9", 30), `lib.a: member at offset 0x8: its name is "#1/9", of 30 bytes`},
		{"two tables of names", magic + file("//", "a/\n") + file("//", "a/\n"), "lib.a: member at offset 0x48: is a second table of long names"},
		{"an index among members", magic + file("a.o/", "") + file("/", systemV(4)), `lib.a: member at offset 0x44: is the table "/", which belongs before all members`},
		{"count", magic + file("/", "\x00\x00\x00\x02abcdef"), "lib.a: member at offset 0x8: the symbol index counts 2 symbols in 10 bytes; run ranlib"},
		{"names", magic + file("/", systemV(4, entry{"a", 0})[:8]+"\x01\x01"), "lib.a: member at offset 0x8: the symbol index names 0 symbols and counts 1; run ranlib"},
		{"no index", magic + file("/", "abc"), "lib.a: member at offset 0x8: the symbol index has 3 bytes; run ranlib"},
		{"lengths", magic + bsdFile("__.SYMDEF", "\xff\xff\xff\xff\xff\xff\xff\xff"), "lib.a: member at offset 0x8: the symbol index has lengths that do not fit its 8 bytes; run ranlib"},
		{"name offset", magic + bsdFile("__.SYMDEF", "\x08\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00a\x00"),
			"lib.a: member at offset 0x8: the symbol index has a name at offset 5 of 2 bytes; run ranlib"},
	} {
		_, _, err := contents(c.data)
		expect.Equal(t, c.want, fmt.Sprint(err), "%s", c.what)
	}
}

// sharedNames is an archive whose members have one long name, many times the size
// of the archive.
func TestSharedNamesAreBounded(t *testing.T) {
	data := magic + file("//", strings.Repeat("x", 16000)+"/\n") + strings.Repeat(headerText("/0", 0), 5000)
	_, _, err := contents(data)
	expect.Error(t, err, "share long names")
}

// An edit moves the offsets of the index, whatever its form, and keeps all that a
// header says but for the size.
func TestReplace(t *testing.T) {
	tail := file("a.o/", "aaa") + file("b.o/", "bbb") + file("c.o/", "ccc")
	at := func(index string) (a, b, c uint64) {
		a = uint64(len(magic + index))
		return a, a + 64, a + 128
	}
	build := func(name string, form func(entries ...entry) string) string {
		empty := file(name, form(entry{"fa", 0}, entry{"fb", 0}, entry{"fc", 0}))
		a, b, c := at(empty)
		return magic + file(name, form(entry{"fa", a}, entry{"fb", b}, entry{"fc", c})) + tail
	}
	for name, form := range map[string]func(entries ...entry) string{
		"/":                func(e ...entry) string { return systemV(4, e...) },
		"/SYM64/":          func(e ...entry) string { return systemV(8, e...) },
		"__.SYMDEF":        func(e ...entry) string { return bsd(binary.LittleEndian, e...) },
		"__.SYMDEF SORTED": func(e ...entry) string { return bsd(binary.BigEndian, e...) },
	} {
		data := build(name, form)
		for _, text := range []string{"", "b", "bbb", "a longer text", "an even longer one"} {
			got := expect.Value(replaced(data, "b.o", text, []string{"fb"}, []string{"aa", "fb"}))(t, "%s", name)
			members, symbols, err := contents(got)
			if diff := cmp.Diff([]string{"a.o: aaa", "b.o: " + text, "c.o: ccc"}, members); err != nil || diff != "" {
				t.Errorf("%s: %v %s", name, err, diff)
			}
			want := []string{"fa in a.o", "aa in b.o", "fb in b.o", "fc in c.o"}
			if name == "__.SYMDEF SORTED" {
				want = []string{"aa in b.o", "fa in a.o", "fb in b.o", "fc in c.o"}
			}
			expect.Equal(t, want, symbols, "%s", name)
			if strings.Count(got, headerText("b.o/", int64(len(text)))) != 1 || !strings.HasSuffix(got, file("c.o/", "ccc")) {
				t.Errorf("%s: got %q", name, got)
			}
		}
		if got, err := replaced(data, "b.o", "bbb", nil, nil); err != nil || got != data {
			t.Errorf("%s: the same contents give another archive: %v", name, err)
		}
	}
}

// What the index does not list although it is defined is left out again, what it
// lists of no symbol stays, and symbols of a member that had none stand between those
// of its neighbours.
func TestUpdateKeepsWhatWasListed(t *testing.T) {
	e := &Edit{changes: []change{
		{Member: &Member{Header: 100}, before: []string{"hidden", "b"}, after: []string{"b", "hidden", "new"}},
		{Member: &Member{Header: 200}, after: []string{"first"}},
		{Member: &Member{Header: 400}, before: []string{"gone"}},
	}}
	got, _ := e.update([]entry{{"a", 50}, {"b", 100}, {"odd", 100}, {"c", 300}, {"gone", 400}})
	want := []entry{{"a", 50}, {"b", 100}, {"new", 100}, {"odd", 100}, {"first", 200}, {"c", 300}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(entry{})); diff != "" {
		t.Error(diff)
	}
}

func TestWrongIndexIsRefused(t *testing.T) {
	tail := file("a.o/", "aaaa") + file("b.o/", "bbb")
	for offset, want := range map[uint64]string{
		0: "where no member is", 5: "where no member is", 1 << 31: "where no member is", 100: "within another member",
	} {
		data := magic + file("/", systemV(4, entry{"f", offset})) + tail
		expect.Contains(t, expect.Failure(replaced(data, "a.o", "longer", nil, nil)), want, "%#x", offset)
	}
	for _, tables := range []string{file("/", systemV(4)) + file("/", ""), file("/<XFGHASHMAP>/", systemV(4, entry{"f", 154}))} {
		expect.Contains(t, expect.Failure(replaced(magic+tables+tail, "a.o", "longer", nil, nil)), "Windows", "%q", tables)
	}
}

// sparse is a large file of which only a few bytes are not zero.
type sparse map[int64]string

func (s sparse) ReadAt(b []byte, off int64) (int, error) {
	clear(b)
	for at, text := range s {
		if from := at - off; from < int64(len(b)) && from+int64(len(text)) > 0 {
			copy(b[max(0, from):], text[max(0, -from):])
		}
	}
	return len(b), nil
}

// An index of 32 bits becomes one of 64 when a member moves beyond 4 GiB.
func TestIndexGrowsWide(t *testing.T) {
	const size = 1<<32 - 200 // of the first member
	second := int64(len(magic)) + headerSize + int64(len(systemV(4, entry{"f", 0}, entry{"g", 0}))) + headerSize + size
	index := file("/", systemV(4, entry{"f", uint64(second - headerSize - size)}, entry{"g", uint64(second)}))
	s := sparse{0: magic + index + headerText("big.o/", size), second: file("g.o/", "gg")}
	a := expect.Value(Open(s, second+62, "lib.a"))(t)
	e := a.Edit()
	for m, err := range a.Members() {
		if err != nil {
			t.Fatal(err)
		}
		if m.Name == "big.o" {
			out := &elfreloc.Output{Size: size + 300, Extents: []elfreloc.Extent{{Len: size}, {Data: make([]byte, 300), Len: 300}}}
			expect.OK(t, e.Replace(m, Change{Output: out}))
		}
	}
	out := expect.Value(e.output())(t)
	grown := int64(len(file("/", systemV(8, entry{"f", 0}, entry{"g", 0})))-len(index)) + 300
	b := expect.Value(Open(out.Reader(s), out.Size, "lib.a"))(t)
	table := expect.Value(b.readIndex())(t)
	want := []entry{{"f", uint64(second - headerSize - size + grown - 300)}, {"g", uint64(second + grown)}}
	if diff := cmp.Diff(want, table.entries, cmp.AllowUnexported(entry{})); diff != "" || !b.index.wide {
		t.Error(diff)
	}
	m, err := b.member(second + grown)
	if err != nil || m.Name != "g.o" {
		t.Fatalf("got %v, %v", m, err)
	}
	text := make([]byte, 2)
	if _, err := out.Reader(s).ReadAt(text, m.Start); err != nil && err != io.EOF || !bytes.Equal(text, []byte("gg")) {
		t.Errorf("got %q, %v", text, err)
	}
}

// A size that does not fit its ten digits is refused.
func TestHugeMember(t *testing.T) {
	a := expect.Value(open(magic + file("a.o/", "a")))(t)
	e := a.Edit()
	for m := range a.Members() {
		expect.Error(t, e.Replace(m, Change{Output: &elfreloc.Output{Size: 10_000_000_000}}), "a header has room for")
	}
}

// FuzzReplace reads an archive and gives one of its members other contents and other
// symbols, or another size in a thin one. The result has to be an archive of the same members in which the index
// tells the same of all others.
func FuzzReplace(f *testing.F) {
	tail := file("a.o/", "aaa") + file("b.o/", "bbb")
	names := file("//", "a_name_of_more_than_15.o/\n")
	for _, data := range []string{
		magic, magic + tail, magic + names + file("/0", "x") + tail,
		magic + file("/", systemV(4, entry{"fa", 92}, entry{"fb", 156})) + tail,
		magic + file("/SYM64/", systemV(8, entry{"fa", 98})) + tail,
		magic + bsdFile("__.SYMDEF", "\x00\x00\x00\x00\x00\x00\x00\x00") + bsdFile("a b.o", "x"),
		magic + file("/", systemV(4)) + file("/", "") + tail,
		thinMagic + file("//", "x/a.o/\nlib.a/\n") + headerText("/0", 99) + headerText("/7:94", 10),
	} {
		f.Add(data, uint8(0), "text")
		f.Add(data, uint8(1), "")
	}
	f.Fuzz(func(t *testing.T, data string, which uint8, text string) {
		before, symbols, err := contents(data)
		if err != nil {
			return
		}
		result, at, err := replaceAt(data, int(which), text)
		if err != nil || at < 0 {
			return // the index makes no sense, or there is no such member
		}
		after, renamed, err := contents(result)
		if err != nil {
			t.Fatalf("the result cannot be read: %v", err)
		}
		if strings.HasPrefix(data, magic) {
			name, _, _ := strings.Cut(before[at], ": ")
			before[at] = after[at] // compared by what was wanted
			if !strings.HasSuffix(after[at], ": "+text) || !strings.HasPrefix(after[at], name) {
				t.Fatalf("got %q", after[at])
			}
		} else { // which may name the file more than once
			name, _, _ := strings.Cut(before[at], ": ")
			for i := range before {
				if strings.HasPrefix(before[i], name+": ") && i < len(after) {
					before[i] = after[i]
				}
			}
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Fatal(diff)
		}
		want := map[string]int{}
		for _, s := range symbols {
			want[s]++
		}
		for _, s := range renamed {
			if want[s]--; want[s] < 0 && !strings.HasPrefix(s, "new in ") {
				t.Fatalf("the index names %q", s)
			}
		}
		for s, n := range want {
			if n > 0 {
				t.Fatalf("the index has lost %q", s)
			}
		}
	})
}

// replaceAt replaces a member by its number, which then defines one symbol more. It
// returns -1 if there is none.
func replaceAt(data string, which int, text string) (string, int, error) {
	a, err := open(data)
	if err != nil {
		return "", -1, err
	}
	at := 0
	for m, err := range a.Members() {
		if err != nil {
			return "", -1, err
		}
		if at == which && a.Thin {
			out, err := a.Resized(map[string]int64{a.Path(m): int64(len(text))})
			if err != nil || out == nil {
				return "", -1, err
			}
			result, err := objects.Assemble(out, []byte(data))
			return string(result), at, err
		}
		if at == which {
			e := a.Edit()
			if err := e.Replace(m, Change{Output: textOutput(text), After: []string{"new"}}); err != nil {
				return "", -1, err
			}
			result, err := saved(e, data)
			return result, at, err
		}
		at++
	}
	return "", -1, nil
}
