package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplitWordsQuotesAndEscapes(t *testing.T) {
	for text, want := range map[string][]string{
		"":                   nil,
		" \t\r\n\v\f":        nil,
		"a b\tc\nd\r\ne":     {"a", "b", "c", "d", "e"},
		`"a b" 'c d'`:        {"a b", "c d"},
		`a"b c"d'e f'g`:      {"ab cde fg"},
		`"" ''`:              {"", ""},
		`\" \' \\ \  a\ b`:   {`"`, `'`, `\`, " ", "a b"},
		`"a\"b" 'c\'d' "\\"`: {`a"b`, `c'd`, `\`},
		`"it's" 'say "x"'`:   {"it's", `say "x"`},
		"a\x00b ä":           {"a\x00b", "ä"},
	} {
		got, err := splitWords([]byte(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", text, err, diff)
		}
	}
}

func TestSplitWordsErrors(t *testing.T) {
	for text, want := range map[string]string{
		`a \`: "ends with a backslash", `a "b`: `quote " is not closed`, `'b"`: "quote ' is not closed",
	} {
		if _, err := splitWords([]byte(text)); err == nil || err.Error() != want {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

// expandFiles writes response files into a folder and expands @0.
func expandFiles(t *testing.T, texts ...string) ([]string, error) {
	t.Helper()
	dir := t.TempDir()
	for i, text := range texts {
		text = strings.ReplaceAll(text, "@", "@"+dir+string(filepath.Separator))
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return expandResponseFiles([]string{"first", "@" + filepath.Join(dir, "0"), "last"})
}

func TestResponseFilesKeepTheOrder(t *testing.T) {
	got, err := expandFiles(t, "a @1 b @1", "c @2", "d")
	if diff := cmp.Diff([]string{"first", "a", "c", "d", "b", "c", "d", "last"}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}

func TestResponseFilesThatDoubleAreBounded(t *testing.T) {
	_, err := expandFiles(t, strings.Repeat("@0 ", 100))
	if !errors.As(err, new(usageError)) || !strings.HasSuffix(err.Error(), "includes itself, or too much") {
		t.Errorf("got %v", err)
	}
}

func TestAnAtSignAloneIsAnArgument(t *testing.T) {
	got, err := expandResponseFiles([]string{"@", "a@b"})
	if diff := cmp.Diff([]string{"@", "a@b"}, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
}
