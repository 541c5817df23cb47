package documents

import (
	"os"
	"path/filepath"
	"regexp"
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

// sh runs a command.
func (p *project) sh(command string) (string, error) {
	return tools.Command{Directory: p.directory, Env: []string{
		"PATH=" + p.bin + ":" + os.Getenv("PATH"), "CPATH=" + tools.Root("include"), "LC_ALL=C",
	}}.Try("sh", "-ec", command)
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
