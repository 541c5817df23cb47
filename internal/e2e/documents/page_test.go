package documents

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

var (
	converter string // the program
	linkers   string // the directory in which it has the names of linkers
)

func TestMain(m *testing.M) {
	tools.Main(m, `TestMakefiles|TestEachBlockIsListed|TestEachBuildHasItsTest|TestFlags`, &converter, func(directory string) error {
		linkers = filepath.Join(directory, "linkers")
		names := []string{"ld", "ld.bfd", "ld.gold", "ld.lld", "ld.mold", "sdtconvert-cc"}
		if err := tools.LinkAs(linkers, converter, names...); err != nil {
			return err
		}
		return tools.LinkAs(filepath.Join(linkers, "bin"), converter, "dtrace")
	})
}

// block is a fenced block of a page: its language, the file that it is, if the text before it
// names one, and its lines.
type block struct{ language, file, text string }

var (
	fenced = regexp.MustCompile("(?ms)(?:^`([\\w.]+)`:\n\n)?^ *```(\\w*)\n(.*?)^ *```$")
	// prefix is what pages call the directory of the linkers.
	prefix = regexp.MustCompile(`(-B|=|"| )DIR\b`)
)

// page returns the text of a page, with linkers for the directory that the Debian package has.
func page(t *testing.T, path string) string {
	t.Helper()
	text := string(disk.Read(t, tools.Root(filepath.FromSlash(path))))
	text = strings.ReplaceAll(text, "/usr/libexec/sdtconvert", linkers)
	return prefix.ReplaceAllString(text, "${1}"+linkers)
}

// blocks returns the fenced blocks of a text.
func blocks(text string) (all []block) {
	for _, m := range fenced.FindAllStringSubmatch(text, -1) {
		all = append(all, block{m[2], m[1], m[3]})
	}
	return all
}

// section returns the part of a page below a heading of the second level.
func section(t *testing.T, text, heading string) string {
	t.Helper()
	_, text, ok := strings.Cut(text, "\n## "+heading+"\n")
	if !ok {
		t.Fatalf("no section %q", heading)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	return text
}

// project is a directory in which builds run with a certain program as sdtconvert.
type project struct {
	*testing.T
	directory, bin string
}

// newProject makes a directory with files, in which sdtconvert is the program in a directory
// bin.
func newProject(t *testing.T, bin string, files map[string]string) *project {
	t.Helper()
	p := &project{t, t.TempDir(), bin}
	for name, text := range files {
		path := filepath.Join(p.directory, name)
		expect.OK(t, os.MkdirAll(filepath.Dir(path), 0o777))
		disk.Write(t, path, text)
	}
	return p
}

// sh runs a command. With $CC, Meson has no sccache in front of the compiler, whose server may not
// start in time. An sdtconvert of the system is not found, and neither is its description for pkg-config.
func (p *project) sh(command string) (string, error) {
	return tools.Command{Directory: p.directory, Env: []string{
		"PATH=" + p.bin + ":" + systemPath(), "PKG_CONFIG_LIBDIR=/", "CPATH=" + tools.Root("include"), "LC_ALL=C", "CC=cc",
	}}.Try("sh", "-ec", command)
}

// systemPath returns PATH without directories that have an sdtconvert.
func systemPath() string {
	path := slices.DeleteFunc(filepath.SplitList(os.Getenv("PATH")), func(directory string) bool {
		_, err := os.Stat(filepath.Join(directory, "sdtconvert"))
		return err == nil
	})
	return strings.Join(path, string(filepath.ListSeparator))
}

// must runs a command that succeeds.
func (p *project) must(command string) string {
	p.Helper()
	out, err := p.sh(command)
	if err != nil {
		p.Fatalf("%s: %v\n%s", command, err, out)
	}
	return out
}

// lacks checks that files are not there.
func (p *project) lacks(files ...string) {
	p.Helper()
	for _, file := range files {
		if _, err := os.Lstat(filepath.Join(p.directory, file)); err == nil {
			p.Errorf("%s was left", file)
		}
	}
}

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
	eventStamp  = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d\.\d{6} \d+ `)
)

// plain returns a text with one number in place of all that are hexadecimal, a space in place
// of several, and no time and thread before events.
func plain(text string) string {
	text = eventStamp.ReplaceAllString(text, "")
	return spaces.ReplaceAllString(hexadecimal.ReplaceAllString(text, "0x0"), " ")
}

var (
	// shownCommand is a command in a text or a block: the flags of `sdtconvert ld` end at --.
	shownCommand = regexp.MustCompile("sdtconvert((?: +[^ `\n|;&>)]+)+)")
	longFlag     = regexp.MustCompile(`^--[a-z][a-z-]+`)
)

// TestFlags looks for the commands and flags that the pages show in the program's help.
func TestFlags(t *testing.T) {
	pages := expect.Value(filepath.Glob(tools.Root("docs", "*.md")))(t)
	pages = append(pages, tools.Root("README.md"), tools.Root("CONTRIBUTING.md"))
	help, count := map[string]string{}, 0
	for _, path := range pages {
		for _, m := range shownCommand.FindAllStringSubmatch(string(disk.Read(t, path)), -1) {
			words := strings.Fields(m[1])
			command := "convert"
			if regexp.MustCompile(`^[a-z]+$`).MatchString(words[0]) {
				command = words[0]
			}
			if help[command] == "" {
				out, err := tools.Try(converter, "help", command)
				if err != nil {
					continue // words of a sentence
				}
				help[command] = out
			}
			for _, word := range words {
				if word == "--" {
					break
				}
				flag := longFlag.FindString(word)
				if flag == "" {
					continue
				}
				count++
				if !regexp.MustCompile(`(^|[ ,])` + flag + `\b`).MatchString(help[command]) {
					t.Errorf("%s: %s has no %s: sdtconvert%s", filepath.Base(path), command, flag, m[1])
				}
			}
		}
	}
	if count < 30 {
		t.Errorf("%d flags were found", count)
	}
}

// TestVersions compares the versions that pages show with the program's.
func TestVersions(t *testing.T) {
	version := strings.Fields(tools.Must(t, converter, "version"))[1]
	for path, text := range map[string]string{"README.md": "sdtconvert_VERSION_amd64.deb", "docs/builds.md": "# sdtconvert VERSION\n"} {
		expect.Contains(t, string(disk.Read(t, tools.Root(path))), strings.Replace(text, "VERSION", version, 1), path)
	}
}

// TestTracers runs sessions of docs/tracers.md with the program of docs/first-steps.md.
func TestTracers(t *testing.T) {
	tools.Need(t, "cc", "gcc", "readelf")
	source := blockWith(t, "docs/first-steps.md", "/* count.c */")
	p := newProject(t, filepath.Dir(converter), map[string]string{"count.c": source, "README.md": "a\nbcd\n"})
	p.must("cc -O2 -B" + linkers + " -o count count.c")
	p.session(blockWith(t, "docs/tracers.md", "$ readelf -n count"))
	t.Run("gdb", func(t *testing.T) {
		tools.Need(t, "gdb")
		var script string
		for _, m := range regexp.MustCompile(`(?m)^\(gdb\) (.*)$`).FindAllStringSubmatch(blockWith(t, "docs/tracers.md", "(gdb)"), -1) {
			script += m[1] + "\n"
		}
		disk.Write(t, filepath.Join(p.directory, "script"), script)
		p.prints(t, "gdb -nx -batch -x script ./count", "count    end__of__line 0x0\nBreakpoint 1 at \nBreakpoint 1, \n$1 = 1\n")
	})
	t.Run("bpftrace", func(t *testing.T) {
		tools.NeedUprobes(t)
		lines := strings.Split(blockWith(t, "docs/tracers.md", "# bpftrace -l"), "\n# ")
		p.prints(t, strings.TrimPrefix(lines[0], "# "), "usdt:./count:count:end__of__line")
		p.prints(t, strings.TrimSpace(lines[1]), "2 lines\n@width:\n[0, 10) 2 |@")
	})
}
