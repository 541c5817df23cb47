package ld

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

var tracedCall = regexp.MustCompile(`(?m)^(\d+) +(\w+)\(`)

// ownTemporary is a file that lld or mold renames to the output, and leaves behind if it is killed.
var ownTemporary = regexp.MustCompile(`\.mold-\w+|\.out\.so\.\d+|out\.so\.tmp\w+`)

// callsOf returns how often a thread of a traced program makes each call at most.
func callsOf(log string) map[string]int {
	most, count := map[string]int{}, map[string]int{}
	for _, m := range tracedCall.FindAllStringSubmatch(log, -1) {
		count[m[0]]++
		most[m[2]] = max(most[m[2]], count[m[0]])
	}
	return most
}

// A link that is killed at any of its system calls, in the program or in the linker, leaves no file but the
// output, and a link that ends well is whole.
func TestKillAtEachCallOfALink(t *testing.T) {
	tools.Need(t, "strace")
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		compile(t, "main.c", "sub/second.c")
		if err := os.WriteFile("blob.s", []byte(".data\n.fill 34000000\n.section .note.GNU-stack\n"), 0o666); err != nil {
			t.Fatal(err)
		}
		// Converted bytes of this size are in a file without a name.
		tools.Must(t, "gcc", "-c", "blob.s")
		tools.Must(t, "ld", "-r", "-o", "large.o", "sub/second.o", "blob.o")
		check := untouched(t, "main.o", "large.o")
		before := entries(t)
		link := func(inject ...string) (ok bool, log string) {
			args := append([]string{"-f", "-qq", "-o", os.Getenv("TMPDIR") + "/../log"}, inject...)
			cmd := exec.Command("strace", append(args, converter, "ld", "-j", "2", "--linker", l.Path, "--", "-m", "elf_x86_64", "-shared", "-o", "out.so", "main.o", "large.o")...)
			cmd.Env = append(os.Environ(), "GOMAXPROCS=1") // few threads: strace counts calls of each by itself
			err := cmd.Run()
			return err == nil, read(t, os.Getenv("TMPDIR")+"/../log")
		}
		ok, log := link()
		if !ok {
			t.Fatal(log)
		}
		type place struct {
			call string
			when int // of the thread's calls of that name
		}
		var places []place
		calls := callsOf(log)
		for _, name := range slices.Sorted(maps.Keys(calls)) {
			for when := range calls[name] {
				places = append(places, place{name, when + 1})
			}
		}
		rand.New(rand.NewPCG(30, uint64(len(l.Name)))).Shuffle(len(places), func(i, j int) { places[i], places[j] = places[j], places[i] })
		killed := 0
		for _, at := range places[:min(len(places), tools.Cases(t, 10))] {
			os.Remove("out.so")
			ok, _ := link("-e", fmt.Sprintf("inject=%s:signal=KILL:when=%d", at.call, at.when))
			if ok {
				expect.Lacks(t, tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe", "%v: not converted", at)
			} else {
				killed++
			}
			os.Remove("out.so")
			removeMatching(t, ownTemporary)
			if left := entries(t); left != before {
				t.Fatalf("%v: there were %s, and are %s", at, before, left)
			}
			if left, err := os.ReadDir(os.Getenv("TMPDIR")); err != nil || len(left) > 0 {
				t.Fatalf("%v: left behind: %v, %v", at, left, err)
			}
		}
		check()
		if killed == 0 {
			t.Errorf("not killed at any of %d calls", len(places))
		}
		t.Logf("killed at %d of %d calls", killed, len(places))
	})
}

// entries returns the names of the files in this directory.
func entries(t *testing.T) string {
	t.Helper()
	var names []string
	for _, e := range expect.Value(os.ReadDir("."))(t) {
		names = append(names, e.Name())
	}
	return strings.Join(names, " ")
}

// removeMatching removes files of this directory.
func removeMatching(t *testing.T, names *regexp.Regexp) {
	t.Helper()
	for _, e := range expect.Value(os.ReadDir("."))(t) {
		if names.MatchString(e.Name()) {
			expect.OK(t, os.Remove(e.Name()))
		}
	}
}
