package archives

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// usualSequences is how many random sequences are tried; SDTCONVERT_ATTACK is how many
// instead.
const usualSequences = 12

// twin is one of the three directories that a sequence works in, with the same commands.
type twin struct{ directory string }

// try runs a command in the directory.
func (w *twin) try(name string, args ...string) (out string, ok bool) {
	out, err := (tools.Command{Directory: w.directory}).Try(name, args...)
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		panic(err)
	}
	return out, err == nil
}

// sequence is a random sequence of what archivers do. What it does to the archive that is
// converted in between, it does to one that is not, and to one whose members were
// converted before.
type sequence struct {
	*testing.T
	*shelf
	rand                        *rand.Rand
	done                        []string // what was done, for messages
	converted, plain, collected *twin
	ars                         []string
	thin, nested                bool
	broken                      bool // archivers have made an archive that they cannot read
	conversions, links, failed  int
}

func (q *sequence) twins() []*twin { return []*twin{q.converted, q.plain, q.collected} }

// newSequence copies the parts into three new directories, with the same times.
func newSequence(t *testing.T, s *shelf, seed uint64) *sequence {
	t.Helper()
	q := &sequence{T: t, shelf: s, rand: rand.New(rand.NewPCG(20, seed))}
	directory := t.TempDir()
	from := []string{"plain", "plain", "converted"}
	for i, to := range []**twin{&q.converted, &q.plain, &q.collected} {
		tools.Must(t, "cp", "-r", q.path(from[i]), filepath.Join(directory, strconv.Itoa(i)))
		*to = &twin{filepath.Join(directory, strconv.Itoa(i), "work")}
		for _, name := range parts {
			date := time.Unix(1_000_000_000, 0)
			expect.OK(t, os.Chtimes(filepath.Join((*to).directory, name), date, date))
		}
	}
	q.ars = [][]string{{"ar"}, {toolchains.LLVM("llvm-ar")}, {"ar", toolchains.LLVM("llvm-ar"), toolchains.OldLLVM("llvm-ar")}}[q.rand.IntN(3)]
	return q
}

// pick returns some of the parts, mostly with none twice.
func (q *sequence) pick(n int) []string {
	var picked []string
	for range 1 + q.rand.IntN(n) {
		picked = append(picked, parts[q.rand.IntN(len(parts))])
	}
	return picked
}

// fails ends the test with all that was done.
func (q *sequence) fails(format string, args ...any) {
	q.Helper()
	q.Fatalf("%s\nafter:\n%s", fmt.Sprintf(format, args...), strings.Join(q.done, "\n"))
}

// all does the same in every directory. Where it fails it has to fail in each.
func (q *sequence) all(name string, args ...string) bool {
	q.Helper()
	q.done = append(q.done, fmt.Sprintf("%s %q", name, args))
	var first bool
	var said string
	for i, w := range q.twins() {
		out, ok := w.try(name, args...)
		if i == 0 {
			first, said = ok, out
		} else if ok != first {
			q.fails("with conversions: %v %s; without: %v %s", first, said, ok, out)
		}
	}
	if !first {
		q.done[len(q.done)-1] += " # fails"
	}
	return first
}

func (q *sequence) oneOf(choices ...string) string { return choices[q.rand.IntN(len(choices))] }

// modifiers are flags that any operation may have.
func (q *sequence) modifiers() string { return q.oneOf("D", "U", "") + q.oneOf("s", "s", "s", "S", "") }

const lib = "lib.a"

// create makes the archive.
func (q *sequence) create() {
	ar := q.oneOf(q.ars...)
	args := []string{q.oneOf("q", "r") + "c" + q.modifiers()}
	q.thin = q.rand.IntN(3) == 0
	switch {
	case q.thin && ar == "ar":
		args[0] += "T"
	case q.thin:
		args = append([]string{"--thin"}, args...)
	case ar != "ar":
		format := q.oneOf("gnu", "gnu", "bsd", "darwin")
		if format != "gnu" && q.rand.IntN(4) > 0 {
			q.ars = []string{ar}
		}
		args = append([]string{"--format=" + format}, args...)
	}
	if !q.all(ar, append(append(args, lib), q.pick(len(parts))...)...) {
		q.fails("no archive")
	}
}

// operate does one thing to the archive.
func (q *sequence) operate() {
	ar := q.oneOf(q.ars...)
	names := q.pick(4)
	format := []string{}
	if q.thin {
		if ar != "ar" {
			format = []string{"--thin"}
		}
	}
	op := func(letters string, args ...string) {
		q.all(ar, append(append(format, letters), args...)...)
	}
	some := func(letters string) { op(letters+q.modifiers(), append([]string{lib}, names...)...) }
	letter := ""
	if q.thin && ar == "ar" {
		letter = "T"
	}
	switch q.rand.IntN(9) {
	case 0, 1:
		some("r" + letter)
	case 2:
		some("q" + letter)
	case 3:
		format = nil
		some("d")
	case 4:
		format = nil
		some("m")
	case 5: // behind or before another
		op(q.oneOf("m", "r"+letter)+q.oneOf("a", "b")+q.modifiers(), append([]string{q.pick(1)[0], lib}, names...)...)
	case 6:
		format = nil
		op("dN"+q.modifiers(), "2", lib, names[0])
	case 7:
		q.all(q.oneOf("ranlib", toolchains.LLVM("llvm-ranlib")), lib)
	case 8:
		q.addLibrary(ar, names)
	}
}

// addLibrary adds the members of another archive, which may have been converted. No
// linker reads an archive that is itself a member, so that is not done, but where a thin
// archive names the members of another: GNU's alone does that.
func (q *sequence) addLibrary(ar string, names []string) {
	other := fmt.Sprintf("other %d.a", len(q.done))
	if !q.all("ar", append([]string{"qcs" + q.oneOf("", "T"), other}, names...)...) {
		return
	}
	if q.rand.IntN(2) == 0 {
		q.convert(other)
	}
	letters := "qL"
	if q.thin {
		ar, letters, q.nested = "ar", "qT"+q.oneOf("L", ""), true
	}
	q.all(ar, letters+q.modifiers(), lib, other)
}

// convert converts an archive in its place, or to another file that takes its place.
func (q *sequence) convert(name string) {
	q.Helper()
	args := []string{"--layout=pairs", "--follow-thin", name}
	aside := q.rand.IntN(2) == 0 && !q.isThin(name)
	if aside {
		args = []string{"--layout=pairs", "-o", "aside.a", name}
	}
	q.done = append(q.done, fmt.Sprintf("sdtconvert %q", args))
	before, _ := os.ReadFile(filepath.Join(q.converted.directory, name))
	out, ok := q.converted.try(converter, args...)
	switch {
	case !ok && q.nested && strings.Contains(out, "is a member of the archive"):
		q.done[len(q.done)-1] += " # nested"
		if after, _ := os.ReadFile(filepath.Join(q.converted.directory, name)); string(after) != string(before) {
			q.fails("it is refused, and has changed")
		}
		return
	case !ok || out != "":
		q.fails("%s", out)
	}
	q.conversions++
	if aside {
		expect.OK(q, os.Rename(filepath.Join(q.converted.directory, "aside.a"), filepath.Join(q.converted.directory, name)))
	}
	q.sameMembers(name)
}

// isBroken reports whether an archiver cannot read the archive that was never converted:
// GNU's writes half of the names of BSD. It alone reads archives in thin ones.
func (q *sequence) isBroken() bool {
	_, gnu := q.plain.try("ar", "t", lib)
	_, llvm := q.plain.try(toolchains.LLVM("llvm-ar"), "t", lib)
	return !gnu || !llvm && !q.nested
}

func (q *sequence) isThin(name string) bool {
	return strings.HasPrefix(string(disk.Read(q, filepath.Join(q.converted.directory, name))), "!<thin>")
}

// sameMembers compares the members with those that were converted before they were
// archived, as an archiver reads them.
func (q *sequence) sameMembers(name string) {
	q.Helper()
	for _, ar := range []string{"ar", toolchains.LLVM("llvm-ar")} {
		got, ok := q.converted.try(ar, "p", name)
		want, wantOK := q.collected.try(ar, "p", name)
		if got != want || ok != wantOK {
			q.fails("%s: members differ from converted ones: %d bytes, want %d", ar, len(got), len(want))
		}
	}
}

// sameTables compares the names and the index of all three archives.
func (q *sequence) sameTables() {
	q.Helper()
	for _, c := range [][]string{{"ar", "t", lib}, {toolchains.LLVM("llvm-ar"), "t", lib}, {"nm", "-s", lib}, {toolchains.LLVM("llvm-nm"), "--print-armap", lib}} {
		var first string
		for i, w := range q.twins() {
			out, _ := w.try(c[0], c[1:]...)
			if _, index, found := strings.Cut(out, "ndex:\n"); found || strings.Contains(c[0], "nm") {
				out, _, _ = strings.Cut(index, "\n\n")
			}
			if i == 0 {
				first = out
			} else if out != first {
				q.fails("%q: %s\nwant %s", c, first, out)
			}
		}
	}
}

var sequenceLinkers = []string{"ld.bfd", "ld.gold", "", "mold"}

// samePrograms links each archive with each linker and runs what comes of it.
func (q *sequence) samePrograms() {
	q.Helper()
	mode := q.oneOf("--no-whole-archive", "--no-whole-archive", "--whole-archive")
	for _, linker := range sequenceLinkers {
		if linker == "" {
			linker = toolchains.LLVM("ld.lld")
		}
		args := []string{"-o", "prog", "--gc-sections", q.path("main.o"), mode, lib, "--no-whole-archive", q.path("fallback.a"), q.path("probes.o")}
		var first, said string
		for i, w := range q.twins() {
			os.Remove(filepath.Join(w.directory, "prog"))
			out, ok := w.try(linker, args...)
			result := "the link fails"
			if ok {
				if result, ok = w.try("./prog"); !ok {
					result = "it crashes: " + result
				}
			}
			q.links++
			if i == 0 {
				first, said = result, out
			} else if result != first {
				q.fails("%s %q: %s %s, want %s %s", linker, args, first, said, result, out)
			}
		}
		if first == "the link fails" {
			q.failed++
		}
	}
}

// Whatever archivers do to an archive before and after its conversion, it has the names,
// the index and the members that it would have had, and every linker makes the same
// program of it.
func TestSequences(t *testing.T) {
	tools.Need(t, "ar", "nm", "ranlib", toolchains.LLVM("llvm-ar"), toolchains.OldLLVM("llvm-ar"), toolchains.LLVM("llvm-nm"),
		toolchains.LLVM("llvm-ranlib"), "ld.bfd", "ld.gold", "mold", toolchains.LLVM("ld.lld"), toolchains.AMD64.Tool("gcc"))
	count := tools.Cases(t, usualSequences)
	s := newShelf(t)
	var conversions, links, failed, operations, broken atomic.Int64
	t.Cleanup(func() {
		t.Logf("%d sequences of %d operations: %d conversions, %d links, of which %d fail with and without, %d archives broken by archivers", count, operations.Load(), conversions.Load(), links.Load(), failed.Load(), broken.Load())
	})
	for i := range count {
		t.Run(strconv.Itoa(i), func(t *testing.T) {
			t.Parallel()
			q := newSequence(t, s, uint64(i))
			q.run()
			conversions.Add(int64(q.conversions))
			links.Add(int64(q.links))
			failed.Add(int64(q.failed))
			operations.Add(int64(len(q.done)))
			if q.broken {
				broken.Add(1)
			}
		})
	}
}

// run does all of a sequence, until archivers have made an archive that they cannot read.
func (q *sequence) run() {
	q.create()
	for range 1 + q.rand.IntN(6) {
		if q.rand.IntN(3) == 0 {
			q.convert(lib)
		}
		q.operate()
		if q.broken = q.isBroken(); q.broken {
			return
		}
	}
	q.sameTables()
	q.samePrograms()
	q.convert(lib)
	q.sameTables()
	q.samePrograms()
}
