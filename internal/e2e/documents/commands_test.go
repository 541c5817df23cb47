package documents

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/tools"
)

// TestCommands runs the sessions of the pages, each in the order of its page.
func TestCommands(t *testing.T) {
	for _, c := range []struct{ page, file string }{
		{"README.md", "orders.c"},
		{"docs/first-steps.md", "count.c"},
	} {
		t.Run(filepath.Base(c.page), func(t *testing.T) {
			t.Parallel()
			tools.Need(t, "cc", "gcc")
			shown := blocks(page(t, c.page))
			if len(shown) == 0 || shown[0].language != "c" {
				t.Fatalf("%s begins with no program", c.page)
			}
			p := newProject(t, filepath.Dir(converter), map[string]string{c.file: shown[0].text})
			count := 0
			for _, b := range shown {
				if b.language == "console" {
					count += p.session(b.text)
				}
			}
			if count < 3 {
				t.Errorf("%s shows %d commands", c.page, count)
			}
		})
	}
}

// session runs the commands of a block, and compares what they print with what follows them. It
// returns their number.
func (p *project) session(text string) int {
	p.Helper()
	commands := regexp.MustCompile(`(?m)^(?:\$ sudo |\$ |# )(.*)$`).FindAllStringSubmatchIndex(text, -1)
	for i, at := range commands {
		end := len(text)
		if i+1 < len(commands) {
			end = commands[i+1][0]
		}
		command, want := text[at[2]:at[3]], text[at[1]:end]
		if !strings.HasPrefix(command, "bpftrace ") {
			p.prints(p, command, want)
			continue
		}
		p.Run("bpftrace", func(t *testing.T) {
			tools.NeedUprobes(t)
			p.prints(t, command, want)
		})
	}
	return len(commands)
}

// prints runs a command, whose output has to have all lines that are wanted, in their order. A
// line of dots stands for any lines; numbers in hexadecimal and the width of spaces may differ.
func (p *project) prints(t testing.TB, command, want string) {
	t.Helper()
	out, err := p.sh(command)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	left := plain(out)
	for line := range strings.Lines(plain(want)) {
		line = strings.TrimSpace(line)
		if line == "" || line == "..." {
			continue
		}
		_, after, ok := strings.Cut(left, line)
		if !ok {
			t.Errorf("%s does not print %q, but:\n%s", command, line, out)
			return
		}
		left = after
	}
}

var (
	hexadecimal = regexp.MustCompile(`0x[0-9a-f]+`)
	spaces      = regexp.MustCompile(`[ \t]+`)
)

// plain returns a text with one number in place of all that are hexadecimal, and a space in place
// of several.
func plain(text string) string {
	return spaces.ReplaceAllString(hexadecimal.ReplaceAllString(text, "0x0"), " ")
}
