package providers

import (
	"debug/elf"
	"fmt"
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

const (
	systemtap = "/usr/bin/dtrace"
	python    = "/usr/bin/python3" // that runs it
)

// Random provider files, right ones and broken ones. What -h and -G make of each is what it
// declares, and what SystemTap's script makes of it; or it is an error with a line.
func TestScriptsProbes(t *testing.T) {
	tools.Need(t, python, "cpp", "cc", systemtap)
	b := newBuild(t)
	total, same, refused, guessed := tools.Cases(t, 100), 0, 0, 0
	const batch = 200
	for from := 0; from < total && !t.Failed(); from += batch {
		var all []*specimen
		args := []string{source(t, "script.py"), systemtap}
		for i := from; i < min(from+batch, total); i++ {
			s, name := newSpecimen(uint64(i)), fmt.Sprintf("s%d.d", i)
			b.write(t, name, s.text)
			all = append(all, s)
			if s.preprocess {
				name = "-C:" + name
			}
			args = append(args, name)
		}
		said := strings.Fields(b.Output(t, python, args...))
		if len(said) != len(all) {
			t.Fatalf("%d answers to %d files: %q", len(said), len(all), said)
		}
		for i, s := range all {
			name := fmt.Sprintf("s%d.d", from+i)
			c := &comparison{build: b, specimen: s, file: name}
			accepted := c.ours(t)
			switch {
			case !accepted:
				refused++
			case said[i] != "ok":
				guessed++
			default:
				same++
				c.theirs(t)
			}
			if t.Failed() {
				t.Fatalf("seed %d, %+v: %s\n%s", from+i, said[i], b.read(t, name), s.flags())
			}
			for _, suffix := range []string{"", ".h", ".ours.h", ".ours.o"} {
				os.Remove(filepath.Join(b.Directory, name+suffix))
			}
		}
	}
	t.Logf("%d files: %d as SystemTap's script has them, %d that its grammar does not know, %d errors with their lines", total, same, guessed, refused)
	if same < total/3 {
		t.Errorf("only %d of %d files were compared", same, total)
	}
}

// comparison compares what is made of one file.
type comparison struct {
	build
	*specimen
	file   string
	header []made // what the header has
}

// made is a probe of a header.
type made struct {
	Provider, Name string
	Args           []string // without white space
}

func (s *specimen) flags() string {
	if s.preprocess {
		return "-C"
	}
	return ""
}

var (
	ownRemark    = regexp.MustCompile(`(?m)^/\* (\w+):::(\w+)\((.*)\) \*/$`)
	theirRemark  = regexp.MustCompile(`(?m)^/\* \w+ \( ?(.*) ?\) \*/$`)
	theirProbe   = regexp.MustCompile(`(?m)^DTRACE_PROBE\d* \((\w+), (\w+)`)
	theirGuard   = regexp.MustCompile(`(?m)^__extension__ extern unsigned short (\w+_semaphore) `)
	placedError  = regexp.MustCompile(`(?m)^(sdtconvert: )?[\w.]+:\d+(:\d+)?: \S`)
	probeOf      = regexp.MustCompile(`\bprobe\s+[A-Za-z_]\w*\s*\(`)
	remarkOrLine = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	hashLine     = regexp.MustCompile(`(?m)^[ \t]*#.*$`)
)

// ours makes the header and the object, and compares them with what the file declares. It
// reports whether the file was accepted.
func (c *comparison) ours(t *testing.T) bool {
	t.Helper()
	args := []string{"-w", "-h", "-s", c.file, "-o", c.file + ".ours.h"}
	if c.preprocess {
		args = append(args, "-C")
	}
	out, err := c.Try(c.dtrace, args...)
	if err != nil {
		if !placedError.MatchString(out) {
			t.Errorf("an error without a line: %s", out)
		}
		if !c.mutated && !c.mayBeRefused(out) {
			t.Errorf("refused: %s", out)
		}
		return false
	}
	for _, m := range ownRemark.FindAllStringSubmatch(c.read(t, c.file+".ours.h"), -1) {
		c.header = append(c.header, made{m[1], m[2], list(m[3])})
	}
	args[1], args[5] = "-G", c.file+".ours.o"
	if out, err := c.Try(c.dtrace, args...); err != nil {
		t.Errorf("a header, and no object: %s", out)
		return true
	}
	c.compareObject(t)
	if !c.mutated {
		c.compareDeclared(t)
	} else if text := hashLine.ReplaceAllString(remarkOrLine.ReplaceAllString(c.text, " "), ""); !c.preprocess {
		if n := len(probeOf.FindAllString(text, -1)); n != len(c.header) && !strings.ContainsAny(c.text, "\"'") {
			t.Errorf("%d probes are written, and %d made", n, len(c.header))
		}
	}
	return true
}

// mayBeRefused reports whether a file that was not mutated may be refused with a message.
func (c *comparison) mayBeRefused(out string) bool {
	for _, why := range []string{"is declared twice", "would have one macro", "would have one semaphore", "does not end: here is"} {
		if strings.Contains(out, why) {
			return true
		}
	}
	return false
}

// list are arguments without their white space.
func list(text string) (args []string) {
	text = strings.ReplaceAll(strings.ReplaceAll(text, " ", ""), "\t", "")
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// expand replaces macros of types.
func (c *comparison) expand(text string) string {
	for _, m := range regexp.MustCompile(`(?m)^#define (Type\d) (.*)$`).FindAllStringSubmatch(c.text, -1) {
		text = strings.ReplaceAll(text, m[1], strings.ReplaceAll(m[2], " ", ""))
	}
	return text
}

// compareDeclared compares the header with what the grammar has declared.
func (c *comparison) compareDeclared(t *testing.T) {
	t.Helper()
	var want []made
	var order []string // providers are in the order of their first declarations
	for _, d := range c.probes {
		m := made{Provider: d.provider, Name: d.name}
		for _, a := range d.args {
			m.Args = append(m.Args, c.expand(a.typ))
		}
		want = append(want, m)
	}
	for _, m := range regexp.MustCompile(`\bprovider\s+(\w+)\s*\{`).FindAllStringSubmatch(c.text, -1) {
		order = append(order, m[1])
	}
	slices.SortStableFunc(want, func(a, b made) int { return slices.Index(order, a.Provider) - slices.Index(order, b.Provider) })
	got := slices.Clone(c.header)
	slices.SortStableFunc(got, func(a, b made) int { return slices.Index(order, a.Provider) - slices.Index(order, b.Provider) })
	expect.Equal(t, want, got, "what is declared and what is made")
}

// compareObject compares the semaphores of the object with the probes of the header.
func (c *comparison) compareObject(t *testing.T) {
	t.Helper()
	var want []string
	for _, m := range c.header {
		want = append(want, m.Provider+"_"+m.Name+"_semaphore")
	}
	slices.Sort(want)
	expect.Equal(t, want, c.semaphores(t), "the semaphores of the header and of the object")
}

func (c *comparison) semaphores(t *testing.T) (names []string) {
	t.Helper()
	for _, s := range expect.Value(disk.ELF(t, []byte(c.read(t, c.file+".ours.o"))).Symbols())(t) {
		if elf.ST_TYPE(s.Info) == elf.STT_OBJECT {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return names
}

// theirs compares with the header of SystemTap's script. It writes arguments with their names.
func (c *comparison) theirs(t *testing.T) {
	t.Helper()
	text := c.read(t, c.file+".h")
	args, names := theirRemark.FindAllStringSubmatch(text, -1), theirProbe.FindAllStringSubmatch(text, -1)
	if len(args) != len(names) {
		t.Fatalf("%d lists of arguments of %d probes in %s", len(args), len(names), text)
	}
	theirs := map[string][]string{}
	for i, m := range names {
		theirs[m[1]+":::"+m[2]] = list(args[i][1])
	}
	expect.Equal(t, len(c.header), len(theirs), "SystemTap has %v", theirs)
	for _, m := range c.header {
		key := m.Provider + ":::" + m.Name
		their, ok := theirs[key]
		if len(their) == 1 && their[0] == "void" && len(m.Args) == 0 {
			continue // one argument of no type, which no caller can give
		}
		if !ok || len(their) != len(m.Args) {
			t.Errorf("%s(%v), and SystemTap has %v, %v", key, m.Args, ok, their)
			continue
		}
		for i, a := range m.Args {
			if typ := their[i]; !strings.HasPrefix(typ, a) && !(strings.HasSuffix(typ, "]") && strings.HasPrefix(typ, strings.TrimSuffix(a, "*"))) {
				t.Errorf("%s has argument %d of type %s, and SystemTap has %s", key, i, a, typ)
			}
		}
	}
	var guards []string
	for _, m := range theirGuard.FindAllStringSubmatch(text, -1) {
		guards = append(guards, m[1])
	}
	slices.Sort(guards)
	expect.Equal(t, guards, c.semaphores(t), "SystemTap's semaphores and those of the object")
}
