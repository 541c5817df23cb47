package ld

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// tree is what random links link: a directory with objects and archives under many names.
// Where a path with ".." behind a symbolic link is shortened as text, it leads to another
// file that is there too.
type tree struct {
	root      string
	inputs    []spelled   // objects, archives and scripts
	main      []string    // programs
	libraries []string    // names for -l
	unprobed  []spelled   // inputs without probes
	only      [][]spelled // inputs of which some links have all their probes
}

// Numbers of objects that are converted in other ways, or not at all.
const (
	slimNumber = 101 + iota // intermediate code of gcc
	bitcodeNumber
	refusedNumber
)

// sitesIn returns how many sites an object has, by its number, and ok if all of them are in each program
// that has the object.
func sitesIn(number int) (sites int, ok bool) {
	switch {
	case number == slimNumber || number == bitcodeNumber:
		return 0, false
	case number == 0:
		return 1, true
	case hasProbes(number):
		return 4, true
	}
	return 0, true
}

// hasProbes reports whether an object has probes, by its number.
func hasProbes(number int) bool { return number > 100 || number%3 != 0 }

// spelled is a file in a directory of treeDirectories.
type spelled struct{ directory, name string }

// treeDirectories has, by its real path, all that a directory of the tree may be called.
var treeDirectories = map[string][]string{
	"":          {"", "./", "link/../../", "other/../", "ls/../../", "x/sub/../../", ".//", "ROOT/"},
	"x":         {"x/", "ls/../", "./x/", "x/./", "other/../x/", "ROOT/x/", "ROOT/ls/../", "sp ace/ln/../"},
	"x/sub":     {"x/sub/", "ls/", "x//sub/", "ls/.//", "sp ace/ln/", "lo/../x/sub/", "ROOT/ls/"},
	"other":     {"other/", "lo/", "link/../", "other/sub/../", "link/../../other/", "ROOT/link/../", "lo/sub/../"},
	"other/sub": {"other/sub/", "link/", "lo/sub/", "ls/../../link/", "link/../sub/", "ROOT/link/"},
	"sp ace":    {"sp ace/", "./sp ace/", "link/../../sp ace/", "ROOT/sp ace/"},
}

// directories are the keys of treeDirectories, in an order that does not change.
var directories = []string{"", "x", "x/sub", "other", "other/sub", "sp ace"}

// treeLinks are symbolic links, by their names.
var treeLinks = map[string]string{
	"link": "other/sub", "ls": "x/sub", "lo": "other", "sp ace/ln": "../x/sub", // directories
	"fl.o": "other/b.o", "up.o": "link/../c.o", "x/fl.o": "sub/../../b.o", "other/abs.o": "ROOT/x/c.o", "loop.o": "loop.o",
	"libfl.a": "x/libm.a", "other/libfl.a": "../link/libm.a", "libtl.a": "x/libt.a",
}

// oddNames are copied from other/b.o, with numbers of their own.
var oddNames = []string{`b\1.o`, "q'u.o", "ha#sh.o", "do$l.o", "@b.o", "st*r.o", `d"q.o`, "bl nk.o", "no-suffix", "b.o.o"}

// objectCache holds the compiled objects, by their numbers.
type objectCache struct {
	directory string
	numbers   int
}

// compileObjects compiles all objects that trees are made of.
func compileObjects(t *testing.T) *objectCache {
	t.Helper()
	c := &objectCache{directory: t.TempDir(), numbers: 2*len(directories) + len(oddNames)}
	source := func(name string) string { return filepath.Join(files, "random", name) }
	gcc := func(out, in string, flags ...string) {
		args := append([]string{"-O1", "-fPIE", "-ffreestanding", "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-o", c.path(out), in}, flags...)
		tools.Must(t, "gcc", args...)
	}
	clang := toolchains.LLVM("clang")
	for number, compiler := range map[int][]string{
		slimNumber: {"gcc", "-flto", "-DPROBES"}, bitcodeNumber: {clang, "-flto", "-DPROBES"}, refusedNumber: {"gcc", "-DREFUSED"},
	} {
		args := append(compiler[1:], "-O1", "-fPIE", "-ffreestanding", "-fno-asynchronous-unwind-tables", "-fno-stack-protector", "-c",
			fmt.Sprintf("-DK=%d", number), fmt.Sprintf("-DPULL=%d", number%2), "-o", c.path(fmt.Sprintf("%d.o", number)), source("object.c"))
		tools.Must(t, compiler[0], args...)
	}
	var stubs strings.Builder
	stubs.WriteString("int stubs_called;\nvoid __dtrace_probe_app___wrapped(void) { stubs_called++; }\n")
	for k := 1; k <= c.numbers; k++ {
		flags := []string{"-c", fmt.Sprintf("-DK=%d", k), fmt.Sprintf("-DPULL=%d", k%2)}
		switch {
		case hasProbes(k) && k%6 == 4:
			flags = append(flags, "-DNOPS", "-I"+tools.Root("include"))
		case hasProbes(k):
			flags = append(flags, "-DPROBES")
		}
		if k%9 == 0 {
			flags = append(flags, "-DSTRONG")
		}
		if k%4 == 0 {
			flags = append(flags, "-ffunction-sections")
		}
		gcc(fmt.Sprintf("%d.o", k), source("object.c"), flags...)
		fmt.Fprintf(&stubs, "void __dtrace_probe_app___p%d(void) { stubs_called++; }\n", k)
	}
	for _, k := range []int{slimNumber, bitcodeNumber, refusedNumber} {
		fmt.Fprintf(&stubs, "void __dtrace_probe_app___p%d(void) { stubs_called++; }\n", k)
	}
	disk.Write(t, c.path("stubs.c"), stubs.String())
	gcc("stubs.o", c.path("stubs.c"), "-c")
	gcc("main.o", source("main.c"), "-c")
	gcc("strong.o", source("main.c"), "-c", "-DSTRONG")
	gcc("pull.o", source("main.c"), "-c", "-DSTRONG", "-DPULL")
	gcc("wrap.o", source("wrap.c"), "-c")
	gcc("i386.o", source("object.c"), "-c", "-m32", "-DK=77", "-DPULL=0")
	gcc("libbase.so", source("dynamic.c"), "-shared", "-fPIC", "-nostdlib", "-Dwhich=base", "-Ddynamic=other", "-DK=0", "-Wl,-soname,libbase.so")
	for k := 1; k <= 2; k++ {
		gcc(fmt.Sprintf("libd%d.so", k), source("dynamic.c"), "-shared", "-fPIC", "-nostdlib", fmt.Sprintf("-DK=%d", k), fmt.Sprintf("-Wl,-soname,libd%d.so", k))
	}
	return c
}

func (c *objectCache) path(name string) string { return filepath.Join(c.directory, name) }

// newTree makes a tree.
func newTree(t *testing.T, c *objectCache) *tree {
	t.Helper()
	root := expect.Value(filepath.EvalSymlinks(t.TempDir()))(t)
	tr := &tree{root: root, main: []string{"main.o", "strong.o", "strong.o", "pull.o"}, libraries: []string{"m", "m", "a", "t", "n", "w", "q", "d", "fl", "tl", "r", ":libm.a", ":b.o", ":c.o", ":libt.a"}}
	for _, d := range append(directories, "nest", "dso", "sys/own", "sys/x", "x/libq.a") {
		expect.OK(t, os.MkdirAll(tr.path(d), 0o777))
	}
	for link, to := range treeLinks {
		expect.OK(t, os.Symlink(strings.ReplaceAll(to, "ROOT", root), tr.path(link)))
	}
	// Where a linker finds absolute paths after --chroot: those of the tree, and others.
	expect.OK(t, os.MkdirAll(tr.path("new-root"+filepath.Dir(root)), 0o777))
	for _, link := range []string{root, "/b.o", "/x", "/libm.a"} {
		expect.OK(t, os.Symlink(filepath.Join(root, strings.TrimPrefix(link, root)), tr.path("new-root"+link)))
	}
	tr.addObjects(t, c)
	tr.addArchives(t)
	tr.addScripts(t)
	return tr
}

func (tr *tree) path(name string) string { return tr.root + "/" + name }

// add takes in a file for links.
func (tr *tree) add(directory, name string) { tr.inputs = append(tr.inputs, spelled{directory, name}) }

func (tr *tree) copy(t *testing.T, c *objectCache, from, to string) {
	t.Helper()
	disk.Write(t, tr.path(to), read(t, c.path(from)))
}

func (tr *tree) addObjects(t *testing.T, c *objectCache) {
	t.Helper()
	k := 0
	add := func(directory, name string) {
		k++
		tr.copy(t, c, fmt.Sprintf("%d.o", k), directory+"/"+name)
		tr.add(directory, name)
		if !hasProbes(k) {
			tr.unprobed = append(tr.unprobed, spelled{directory, name})
		}
	}
	for _, d := range directories {
		add(d, "b.o")
		add(d, "c.o")
	}
	for _, name := range oddNames {
		add("", name)
	}
	for number, name := range map[int]string{slimNumber: "x/slim.o", bitcodeNumber: "x/bitcode.o", refusedNumber: "x/refused.o"} {
		tr.copy(t, c, fmt.Sprintf("%d.o", number), name)
	}
	tr.copy(t, c, "libbase.so", "dso/libbase.so")
	for _, name := range []string{"stubs.o", "main.o", "strong.o", "pull.o", "wrap.o", "i386.o"} {
		tr.copy(t, c, name, name)
	}
	expect.OK(t, os.Link(tr.path("b.o"), tr.path("other/hard.o")))
	for _, d := range []struct{ directory, name string }{{"", "libd1.so"}, {"x", "libd2.so"}} {
		tr.copy(t, c, d.name, "dso/"+d.name)
		tr.copy(t, c, d.name, d.directory+"/libd.so")
		tr.add(d.directory, "libd.so")
	}
	tr.inputs = append(tr.inputs, []spelled{{"", "fl.o"}, {"", "up.o"}, {"x", "fl.o"}, {"other", "abs.o"}, {"other", "hard.o"}}...)
}

// addArchives makes archives: each has other members than those of its name elsewhere.
func (tr *tree) addArchives(t *testing.T) {
	t.Helper()
	ar := func(args ...string) { tools.Command{Directory: tr.root}.Must(t, "ar", args...) }
	for i, d := range directories {
		from := func(n int) string { return "./" + directories[(i+n)%len(directories)] }
		ar("rcs", "./"+d+"/libm.a", from(1)+"/b.o", from(2)+"/c.o")
		tr.add(d, "libm.a")
		if i%2 == 0 {
			ar("rcs", "./"+d+"/liba.a", from(3)+"/c.o", from(4)+"/b.o")
			tr.add(d, "liba.a")
		}
	}
	ar("rcsT", "x/libt.a", "link/../b.o", "x/sub/c.o")
	ar("rcsT", "other/libt.a", "ls/../c.o", "b.o", "sp ace/b.o")
	ar("rcsT", "x/sub/libt.a", "ls/b.o", "x/sub/../../lo/c.o")
	ar("rcsT", "nest/libn.a", "x/libm.a", "c.o")
	ar("rcsT", "libn.a", "ls/../libm.a", "link/b.o")
	ar("qcs", "other/libmix.a", "b.o", "x/b.o", "other/c.o")
	ar(append([]string{"qcs", "other/libmany.a"}, slices.Repeat([]string{"b.o", "x/b.o", "other/c.o"}, 100)...)...)
	ar("rcs", "libd.a", "x/c.o") // beside a shared one
	ar("rcS", "x/sub/libi.a", "other/b.o", "x/b.o")
	ar("rcST", "other/libi.a", "x/c.o", "sp ace/b.o") // as kernels are linked
	ar("rcs", "x/libw.a", "i386.o")
	ar("rcs", "other/libw.a", "x/c.o", "sp ace/c.o")
	ar("rcs", "other/libq.a", "x/b.o")
	ar("rcs", "sys/own/libr.a", "x/b.o", "other/c.o")
	ar("rcs", "sys/x/libm.a", "sp ace/b.o")
	for _, name := range []string{"slim", "bitcode", "refused"} {
		objects := []string{"x/" + name + ".o", "./b.o"}
		ar(append([]string{"rcs", "other/lib" + name + ".a"}, objects...)...)
		ar(append([]string{"rcsT", "x/sub/lib" + name + ".a"}, objects...)...)
		tr.only = append(tr.only, []spelled{{"x", name + ".o"}, {"other", "lib" + name + ".a"}, {"x/sub", "lib" + name + ".a"}, {"other/sub", name + ".ld"}})
	}
	tr.only = append(tr.only, []spelled{{"x", "libt.a"}, {"other", "libt.a"}, {"x/sub", "libt.a"}, {"", "libtl.a"}, {"other", "libi.a"}})
	tr.inputs = append(tr.inputs, []spelled{{"x", "libt.a"}, {"other", "libt.a"}, {"x/sub", "libt.a"}, {"", "libn.a"}, {"other", "libmix.a"}, {"other", "libmany.a"},
		{"", "libfl.a"}, {"other", "libfl.a"}, {"", "libtl.a"}, {"other", "libw.a"}, {"", "libd.a"}, {"x/sub", "libi.a"}, {"other", "libi.a"}}...)
}

// addScripts makes linker scripts that name other files.
func (tr *tree) addScripts(t *testing.T) {
	t.Helper()
	for name, text := range map[string]string{
		"in.ld":           "INPUT ( other/b.o )\n",
		"other/in.ld":     "INPUT ( b.o )\n",
		"x/libs.so":       "/* GNU ld script */ GROUP ( link/../c.o AS_NEEDED ( -lm ) )\n",
		"other/sub/in.ld": "INPUT ( -la ../b.o )\n",
		"x/sub/libw.so":   "OUTPUT_FORMAT(elf32-i386)\nGROUP ( b.o )\n",
		"sp ace/libd.so":  "OUTPUT_FORMAT(\"elf64-x86-64\", \"elf64-x86-64\", \"elf64-x86-64\")\nGROUP ( b.o )\n",
		"dir.ld":          "SEARCH_DIR ( x/sub )\n",
		"lat.ld":          "/* \xa9 */ INPUT ( x/c.o )\n",

		"other/sub/slim.ld":    "INPUT ( ../../x/slim.o )\n",
		"other/sub/bitcode.ld": "GROUP ( ../libbitcode.a )\n",
		"other/sub/refused.ld": "INPUT ( ../librefused.a )\n",
	} {
		disk.Write(t, tr.path(name), text)
	}
	tr.inputs = append(tr.inputs, []spelled{{"", "in.ld"}, {"other", "in.ld"}, {"x", "libs.so"}, {"other/sub", "in.ld"}, {"", "lat.ld"}, {"", "dir.ld"}, {"sp ace", "libd.so"}}...)
}
