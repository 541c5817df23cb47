package responsefile

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

func TestExpand(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		disk.Write(t, name, text)
	}
	write("one", `a @two "@three" @none`)
	write("two", "b 'c d'")
	write("three", "@two e @")
	write("self", "a @self")
	got, err := Expand([]string{"x", "@one", "y", "@", "@" + filepath.Join("no", "file")})
	want := []string{"x", "a", "b", "c d", "b", "c d", "e", "@", "@none", "y", "@", "@no/file"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	expect.Equal(t, "response file self includes itself, or too much", expect.Failure(Expand([]string{"@self"})))
	// Two at each level: too many long before it is too deep.
	write("twice", "@twice @twice")
	if _, err := Expand([]string{"@twice"}); err == nil {
		t.Error("no error")
	}
}

// Random texts are divided as a GNU tool divides them, which names each word.
func TestResponseFilesOfGNUTools(t *testing.T) {
	tools.Need(t, "nm")
	t.Chdir(t.TempDir())
	const seed, texts = 20, 200
	r := rand.New(rand.NewPCG(seed, seed))
	words := 0
	for range texts {
		text := make([]byte, r.IntN(30))
		for i := range text {
			text[i] = "ab\\\"' \t\r\v\f"[r.IntN(10)]
		}
		disk.Write(t, "words", text)
		var want strings.Builder
		for _, word := range Split(text) {
			fmt.Fprintf(&want, "nm: '%s': No such file\n", word)
			words++
		}
		if words == 0 || want.Len() == 0 {
			continue // nm reads a.out then
		}
		if got, _, err := (tools.Command{AnyStatus: true, Env: []string{"LC_ALL=C"}}).Apart("sh", "-c", "exec nm @words 2>&1"); err != nil || got != want.String() {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, &want)
		}
	}
	t.Logf("compared %d words of %d texts", words, texts)
}
