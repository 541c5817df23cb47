package ld

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// scriptTree are the files that random scripts name. Each defines a function that is
// named after it, so that the output shows which were taken; those with an x in their
// name hold no probe.
var scriptTree = []string{
	"a.o", "b.o", "x.o", "sub/a.o", "sub/b.o", "sub/x.o", "sub/a b.o", "sub/in/b.o", "sub/in/x.o", "lib/a.o", "lib/c.o", "lib/x.o",
	"root/usr/lib/a.o", "root/usr/lib/c.o",
}

// plantTree makes them, archives of some, and a directory that a link leads to.
func plantTree(t *testing.T) {
	t.Helper()
	for i, name := range scriptTree {
		os.MkdirAll(filepath.Dir(name), 0o777)
		id := strings.NewReplacer("/", "_", ".", "_", " ", "_").Replace(name)
		text := fmt.Sprintf("void __dtrace_probe_app___p%d(int);\nvoid f_%s(int n) { __dtrace_probe_app___p%d(n); __asm__ volatile(\"\"); }\n", i%5, id, i%5)
		if strings.HasSuffix(name, "x.o") {
			text = fmt.Sprintf("int f_%s(int n) { return n + %d; }\n", id, i)
		}
		disk.Write(t, "source.c", text)
		tools.Must(t, "gcc", "-O2", "-fPIC", "-c", "-o", name, "source.c")
	}
	tools.Must(t, "ar", "rcs", "lib/libp.a", "sub/a.o", "sub/x.o")
	tools.Must(t, "ar", "rcs", "sub/libq.a", "sub/in/b.o", "lib/c.o")
	tools.Must(t, "ar", "rcsT", "sub/thin.a", "sub/in/x.o", "sub/b.o")
	tools.Must(t, "ar", "rcs", "sub/in/libr.a", "a.o")
	tools.Must(t, "ar", "rcs", "root/usr/lib/libr.a", "sub/a b.o")
	tools.Must(t, "ar", "rcs", "lib/libs.a", "lib/a.o")
	tools.Must(t, "ar", "rcs", "sub/in/libs.a", "sub/b.o")
	expect.OK(t, os.Symlink("sub/in", "link"))
}

// order returns the functions of scriptTree in an image, each with its section, in the
// order of their addresses.
func order(t *testing.T, image string) string {
	t.Helper()
	section := map[string]string{}
	for _, line := range strings.Split(tools.Output(t, "readelf", "-SW", image), "\n") {
		if _, rest, ok := strings.Cut(line, "] "); ok && strings.Contains(line[:min(8, len(line))], "[") {
			index := strings.Trim(strings.SplitN(line, "]", 2)[0], " [")
			section[index] = strings.Fields(rest + " ?")[0]
		}
	}
	index := map[string]string{}
	for _, line := range strings.Split(tools.Output(t, "readelf", "-sW", image), "\n") {
		if f := strings.Fields(line); len(f) == 8 {
			index[f[7]] = f[6]
		}
	}
	var all []string
	for _, name := range strings.Fields(tools.Output(t, "nm", noPlugins, "-n", "--format=just-symbols", image)) {
		if strings.HasPrefix(name, "f_") {
			all = append(all, name+" in "+section[index[name]])
		}
	}
	return strings.Join(all, ", ")
}

// longestLink is the longest that a link may take. GNU ld reads some scripts that name each
// other forever.
const longestLink = 5 * time.Second

// linkBoth links without and with the wrapper, and reports a difference, or that the
// wrapper has refused what the linker links.
func linkBoth(t *testing.T, l toolchains.Linker, what string, args ...string) (linked, refused bool) {
	t.Helper()
	path, err := exec.LookPath(l.Path) // linkers print the name that they are called by
	expect.OK(t, err)
	var got [2]string
	var failed [2]error
	var said [2]string
	for i := range got {
		os.Remove("out.so")
		os.Remove("out.map")
		if i == 0 {
			started := time.Now()
			said[i], failed[i] = tools.Command{Patience: longestLink}.Try(path, args...)
			if time.Since(started) >= longestLink {
				t.Logf("%s does not end: %s", l.Name, what)
				return false, false
			}
		} else {
			said[i], failed[i] = wrapped(l, append([]string{"--"}, args...)...)
		}
		if failed[i] == nil {
			got[i] = order(t, "out.so")
		}
	}
	sayNothing(t, "the output", said[1])
	if text, err := os.ReadFile("out.map"); err == nil {
		sayNothing(t, "the map of "+what, string(text))
	}
	if failed[1] == nil && strings.Contains(tools.Output(t, "nm", noPlugins, "out.so"), "__dtrace_probe_") {
		t.Errorf("%s\n%s\n%s: stubs are left", what, strings.Join(args, " "), l.Name)
	}
	if failed[0] == nil && failed[1] != nil && (strings.Contains(said[1], "link with --in-place") || strings.Contains(said[1], "name one in full")) {
		return true, true
	}
	if l.Family == "mold" && failed[0] != nil && failed[1] == nil {
		return false, false // the linker of that family finds files next to a script, if it is a later one
	}
	if (failed[0] == nil) != (failed[1] == nil) || got[0] != got[1] {
		t.Errorf("%s\n%s\n%s: %v: %s\nwith sdtconvert: %v: %s\n%s%s", what, strings.Join(args, " "), l.Name, failed[0], got[0], failed[1], got[1], said[0], said[1])
	}
	return failed[0] == nil, false
}

func oneOf[T any](r *rand.Rand, all ...T) T { return all[r.IntN(len(all))] }

// some returns a few of all, in random order, each once.
func some[T any](r *rand.Rand, most int, all ...T) (few []T) {
	for _, i := range r.Perm(len(all))[:1+r.IntN(min(most, len(all)))] {
		few = append(few, all[i])
	}
	return few
}

// Inputs that scripts name are those that the linker takes, wherever the script is.
func TestRandomInputScripts(t *testing.T) {
	const few = 12
	eachLinker(t, func(t *testing.T, l toolchains.Linker) {
		plantTree(t)
		linked, refused, n := 0, 0, tools.Cases(t, few)
		for i := range n {
			what, args := randomScripts(t, rand.New(rand.NewPCG(20, uint64(i))), l)
			ok, no := linkBoth(t, l, fmt.Sprintf("case %d: %s", i, what), args...)
			if ok {
				linked++
			}
			if no {
				refused++
				t.Logf("refused: %s", what)
			}
			if t.Failed() && i > few {
				break
			}
		}
		t.Logf("%s: %d random scripts, of which it links %d; refused: %d", l.Name, n, linked, refused)
		if linked < n/4 && n > 0 || refused > n/5 {
			t.Errorf("of %d links %d succeed and %d are refused", n, linked, refused)
		}
	})
}

// randomScripts writes scripts, and returns their texts and the arguments of a link.
func randomScripts(t *testing.T, r *rand.Rand, l toolchains.Linker) (text string, args []string) {
	t.Helper()
	here := expect.Value(os.Getwd())(t)
	name := func() string {
		if l.Family == "gold" && r.IntN(3) > 0 { // where a name with a slash is looked for next to the script only
			return oneOf(r, "a.o", "b.o", "c.o", "x.o", "-lp", "-lq", "-lr", "-ls", "-l:a.o", here+"/sub/b.o", here+"/lib/../a.o")
		}
		return oneOf(r, append(scriptTree, "a.o", "b.o", "c.o", "./a.o", "link/b.o", "-lp", "-lq", "-lr", "-ls", "-l:a.o", "-lscript",
			here+"/sub/b.o", here+"/lib/../a.o")...)
	}
	rooted := r.IntN(2) == 0
	body := func() string {
		var words []string
		for range 1 + r.IntN(3) {
			word := name()
			if l.Family != "gold" && rooted && r.IntN(5) == 0 {
				word = oneOf(r, "/usr/lib/c.o", "=/usr/lib/c.o", "nothing.o")
			}
			if strings.Contains(word, " ") || r.IntN(3) == 0 && word[0] != '-' && word[0] != '=' {
				word = `"` + word + `"`
			}
			if r.IntN(5) == 0 {
				word = "AS_NEEDED(" + word + ")"
			}
			words = append(words, word)
		}
		return oneOf(r, "INPUT", "GROUP") + "(" + strings.Join(words, oneOf(r, " ", " , ", " /* , */ ")) + ")"
	}
	scripts := []string{"one.ld", "sub/one.ld", "lib/libscript.so", "root/usr/lib/one.ld", "sub/in/two.ld", "t.ld", "sub/in/t.ld", "root/usr/lib/t.ld"}
	var what []string
	for _, script := range append(scripts, "inc.ld", "lib/inc.ld") {
		text := body()
		if l.Family != "mold" && l.Family != "gold" && r.IntN(4) == 0 && !strings.HasSuffix(script, "inc.ld") {
			text += "\nINCLUDE " + oneOf(r, "inc.ld", `"inc.ld"`, "lib/inc.ld")
		}
		if l.Family != "mold" && r.IntN(3) == 0 {
			text = "SEARCH_DIR(" + oneOf(r, "sub/in", "link", `"lib"`, "=/usr/lib", "root/usr/lib", here+"/sub/in") + ")\n" + text
		}
		disk.Write(t, script, text+"\n")
		what = append(what, script+": "+text)
	}
	args = []string{"-shared", "-m", "elf_x86_64", "-o", "out.so", "-Map=out.map", "--allow-multiple-definition", "root/usr/lib/a.o"}
	if rooted {
		args = append(args, "--sysroot="+oneOf(r, "root", here+"/root"))
	}
	if r.IntN(3) == 0 && l.Family != "gold" {
		args = append(args, "-T", oneOf(r, "t.ld", "sub/in/t.ld", "root/usr/lib/t.ld"))
	}
	args = append(args, some(r, 3, "-Llib", "-Lsub", "-Llink", "-L"+here+"/lib")...)
	if rooted && l.Family != "gold" { // which takes -L=/DIR for -L/DIR
		args = append(args, "-L=/usr/lib")
	}
	args = append(args, "-L.", "-Lsub", "-Llib", oneOf(r, "--whole-archive", "--no-whole-archive"), oneOf(r, "-Bstatic", "-Bdynamic"))
	args = append(args, some(r, 2, "one.ld", "./one.ld", "sub/one.ld", here+"/sub/one.ld", "link/two.ld", "root/usr/lib/one.ld", "-lscript")...)
	args = append(args, oneOf(r, nil, nil, []string{"-lr"}, []string{"-ls"})...)
	if r.IntN(3) == 0 && l.Family != "gold" {
		args = append(args, "-T", oneOf(r, "t.ld", "sub/in/t.ld", "root/usr/lib/t.ld"))
	}
	return strings.Join(what, "\n"), args
}
