package assembly

import (
	"debug/elf"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/expect"
)

func source(write func(*Text)) (string, error) {
	t := NewText(8, "f")
	write(t)
	_, body, _ := strings.Cut(string(t.Bytes()), ".file \"f\"\n")
	return body, t.Err()
}

func TestTextQuotesNames(t *testing.T) {
	for name, want := range map[string]string{
		"sdt_a.b$": `"sdt_a.b$"`, "sdt_a.1": "sdt_a.1", "1f": `"1f"`, "a-b": `"a-b"`, "a b": `"a b"`, "größe": `"größe"`, "": `""`,
	} {
		got, err := source(func(a *Text) { a.Word(name, 8) })
		if name == "" {
			want = "8"
		} else {
			want += "+8"
		}
		if got != "\t.8byte "+want+"\n" || err != nil {
			t.Errorf("%q: %q, %v", name, got, err)
		}
	}
}

// No name leads out of its line or its quotes.
func TestTextRefusesNames(t *testing.T) {
	for _, name := range []string{"a\nb", `a"b`, `a\b`, "a@b", "a\x7fb", "a\tb"} {
		body, err := source(func(a *Text) { a.Word(name, 0) })
		if err == nil || !strings.Contains(err.Error(), "cannot be written in assembly") || strings.Count(body, "\n") != 1 {
			t.Errorf("%q: %v, %q", name, err, body)
		}
	}
}

func TestTextQuotesStrings(t *testing.T) {
	got, err := source(func(a *Text) { a.String("a\n\"\\\x00*/1") })
	if diff := cmp.Diff("\t.asciz \"a\\012\\042\\134\\000*/1\"\n", got); diff != "" || err != nil {
		t.Error(err, diff)
	}
}

func TestTextDefinesOnce(t *testing.T) {
	_, err := source(func(a *Text) {
		a.Symbol(Symbol{Name: "a", Bind: elf.STB_WEAK})
		a.Symbol(Symbol{Name: "a", Bind: elf.STB_WEAK})
	})
	expect.Equal(t, `two definitions of "a" are needed in one object`, fmt.Sprint(err))
}
