package attach

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/listjson"
	"sdtconvert/internal/testkit/tools"
)

// note is one as readelf shows it.
type note struct {
	provider, name, args      string
	location, base, semaphore uint64
}

func (n note) String() string {
	return fmt.Sprintf("%s:%s at %#x", n.provider, n.name, n.location)
}

var noteText = regexp.MustCompile(`Provider: (.*)\n\s*Name: (.*)\n\s*Location: (0x[0-9a-f]+), Base: (0x[0-9a-f]+), Semaphore: (0x[0-9a-f]+)\n\s*Arguments: ?(.*)\n`)

func notesOf(t *testing.T, image string) []note {
	t.Helper()
	var all []note
	for _, m := range noteText.FindAllStringSubmatch(tools.Must(t, "readelf", "-nW", image), -1) {
		location, _ := strconv.ParseUint(m[3], 0, 64)
		base, _ := strconv.ParseUint(m[4], 0, 64)
		semaphore, _ := strconv.ParseUint(m[5], 0, 64)
		all = append(all, note{m[1], m[2], m[6], location, base, semaphore})
	}
	return all
}

// raw writes a name of a listing as notes do.
func raw(name string) string { return strings.ReplaceAll(name, "-", "__") }

// recordsOf returns the probe calls that an image has records of, as notes.
func recordsOf(t *testing.T, image string) []string {
	t.Helper()
	var all []string
	for _, p := range listjson.Probes(t, tools.Must(t, converter, "list", "--json", image)) {
		for _, s := range p.Sites {
			if strings.HasPrefix(s.Kind, "isenabled") {
				continue
			}
			if s.State != "disabled" {
				t.Errorf("%+v is not disabled", s)
			}
			at := expect.Value(strconv.ParseUint(s.Address, 0, 64))(t)
			all = append(all, note{provider: raw(p.Provider), name: raw(p.Name), location: at}.String())
		}
	}
	slices.Sort(all)
	return all
}

var baseHeader = regexp.MustCompile(`\.stapsdt\.base +PROGBITS +([0-9a-f]+) `)

// checkNotes compares an image's notes with its records, and returns the notes.
func checkNotes(t *testing.T, image string) []note {
	t.Helper()
	notes := notesOf(t, image)
	var got []string
	for _, n := range notes {
		got = append(got, n.String())
	}
	slices.Sort(got)
	if diff := cmp.Diff(recordsOf(t, image), got); diff != "" || len(got) == 0 {
		t.Errorf("%d notes; records and notes: %s", len(got), diff)
	}
	sections := tools.Must(t, "readelf", "-SW", image)
	if n := strings.Count(sections, ".note.stapsdt"); n != 1 {
		t.Errorf("%d sections of notes", n)
	}
	base := baseHeader.FindStringSubmatch(sections)
	if base == nil {
		t.Fatalf("no base section:\n%s", sections)
	}
	at, _ := strconv.ParseUint(base[1], 16, 64)
	for _, n := range notes {
		if n.base != at {
			t.Errorf("%v: base %#x, which is at %#x", n, n.base, at)
		}
	}
	return notes
}

// wantArgs are the arguments of each probe of the test program, on amd64.
var wantArgs = map[string]string{
	"app:done":       "-4@%edi -8@%rsi 1@%dl 8@%rcx",
	"app:tail":       "-4@%edi",
	"app:dead":       "-4@%edi",
	"app:generic":    "-8@%rdi 8@%rsi",
	"plain:declared": "8@%rdi 4@%esi -1@%dl 2@%cx",
	"plain:file":     "-4@%edi 1@%sil",

	"plain:wide":       "-4@%edi -8@%rsi -2@%dx 8@%rcx -4@%r8d 1@%r9 -4@0(%rsp) 4@8(%rsp) -1@16(%rsp) 2@24(%rsp) -8@32(%rsp)",
	"plain:wide__tail": "-4@%edi -8@%rsi -2@%dx 8@%rcx -4@%r8d 1@%r9 -4@8(%rsp) 4@16(%rsp) -1@24(%rsp) 2@32(%rsp) -8@40(%rsp)",

	"app:half__way":             "-4@%edi",
	"old__app:half__done":       "-4@%edi",
	"plain__text:end__of__line": "-4@%edi",
}

func checkArgs(t *testing.T, notes []note, want map[string]string) {
	t.Helper()
	for _, n := range notes {
		if name := n.provider + ":" + n.name; n.args != want[name] {
			t.Errorf("%s: got arguments %q, want %q", name, n.args, want[name])
		}
	}
}

// TestArguments takes types from where each compiler lets them be known.
func TestArguments(t *testing.T) {
	words := "8@%rdi 8@%rsi 8@%rdx 8@%rcx 8@%r8 8@%r9"
	with := func(args string) map[string]string {
		want := map[string]string{}
		for name := range wantArgs {
			if want[name] = wantArgs[name]; strings.HasPrefix(name, "plain") {
				want[name] = args
			}
		}
		return want
	}
	for _, c := range []compiler{gcc, clang} {
		for _, g := range []string{"-g", "-gdwarf-4", "-g0", "-g -gz"} {
			t.Run(c.cc.Name+g, func(t *testing.T) {
				t.Parallel()
				p := compileProgram(t, c, strings.Fields(g)...)
				want := wantArgs
				if g == "-g0" {
					want = with(words)
				}
				checkArgs(t, checkNotes(t, p.executable(t)), want)
			})
		}
	}
}
