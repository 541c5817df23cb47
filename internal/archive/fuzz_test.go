package archive

import (
	"sdtconvert/internal/testkit/objects"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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
