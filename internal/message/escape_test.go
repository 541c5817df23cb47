package message

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"

	"sdtconvert/internal/testkit/expect"
)

func TestEscape(t *testing.T) {
	for text, want := range map[string]string{
		"":                              "",
		"a'b\\n\"~ ":                    "a'b\\n\"~ ",
		"größe \u65e5\u672c \U0001f600": "größe \u65e5\u672c \U0001f600",
		"a\n\t\x00\x1b\x7f":             `a\n\t\x00\x1b\x7f`,
		"ü\x9b31m\u009b\xff":            `ü\x9b31m\u009b\xff`,
		"\xe2\x80":                      `\xe2\x80`, // cut off
		"\u202ex\u2066\u200f\u061c":     `\u202ex\u2066\u200f\u061c`,
		"\u2028\u2029\ufeff\u00ad":      `\u2028\u2029\ufeff\u00ad`,
		"\U000e0041\U0010ffff":          `\U000e0041\U0010ffff`,
		"\ufffd":                        "\ufffd", // a character as any other
	} {
		expect.Equal(t, want, Escape(text), "%q", text)
	}
	text := "an ordinary name"
	expect.Equal(t, 0, testing.AllocsPerRun(10, func() { Escape(text) }))
}

// FuzzEscape holds the escapes of lines and of JSON against Unicode's tables and encoding/json.
func FuzzEscape(f *testing.F) {
	for _, text := range []string{"a", "\x9b", "\u202e\U000e0041", "\"\\\u2028", "ü\x1b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		line := Escape(text)
		document := expect.Value(json.Marshal(text))(t)
		escaped := EscapeJSON(document)
		for _, shown := range []string{line, string(escaped)} {
			for i, r := range shown {
				if _, size := utf8.DecodeRuneInString(shown[i:]); !unicode.IsGraphic(r) || r == utf8.RuneError && size == 1 {
					t.Errorf("%q: %q has %q", text, shown, r)
				}
			}
		}
		expect.Equal(t, line, Escape(line), "once more")
		var plain, read string
		expect.OK(t, json.Unmarshal(document, &plain))
		expect.OK(t, json.Unmarshal(escaped, &read))
		expect.Equal(t, plain, read)
	})
}
