package line

import (
	"fmt"
	"maps"
	"math/rand/v2"
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

// inputs shows what a line's inputs are, and how they are read.
func inputs(l *Line) string {
	var all []string
	for i := range l.Args {
		a := &l.Args[i]
		text := a.Value
		switch a.Kind {
		case Other:
			continue
		case Library:
			text = "-l" + text
		}
		if a.Static {
			text += "(static)"
		}
		if a.Foreign {
			text += "(foreign)"
		}
		if a.Lazy {
			text += "(lazy)"
		}
		all = append(all, text)
	}
	return strings.Join(all, " ")
}

func TestInputs(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"a.o b.o -o out", "a.o b.o"},
		{"-o a.o b.o", "b.o"},
		{"-oa.o b.o", "b.o"},
		{"-omagic a.o", "a.o"},
		{"--omagic a.o", "a.o"},
		{"--output a.o --output=a.o b.o", "b.o"},
		{"-T a.o -Ta.o -Ttext 0 -Ttext=0 --script a.o -dT a.o b.o", "b.o"},
		{"-R a.o --just-symbols a.o --just-symbols=a.o b.o", "b.o"},
		{"-r a.o -i b.o -Ur c.o", "a.o b.o c.o"},
		{"-rpath a.o -rpath=a.o --rpath a.o -rpath-link a.o b.o", "b.o"},
		{"-z defs -zdefs a.o -m elf_x86_64 -melf_x86_64 b.o", "a.o b.o"},
		{"-plugin p.so -plugin-opt=a.o -plugin-opt a.o --plugin p.so b.o", "b.o"},
		{"-Map a.o -Map=a.o --Map a.o -M b.o", "b.o"},
		{"-soname a.o -soname=a.o -h a.o -ha.o b.o", "b.o"},
		{"-e main -emain --entry main a.o", "a.o"},
		{"-export-dynamic a.o -E b.o -eh-frame-hdr c.o", "a.o b.o c.o"},
		{"-dynamic-linker /lib/ld.so -I /lib/ld.so a.o", "a.o"},
		{"-shared a.o -s b.o -S c.o -x d.o -pie e.o -N f.o -n g.o", "a.o b.o c.o d.o e.o f.o g.o"},
		{"-u sym -y sym -defsym a=b --defsym a=b --wrap sym a.o", "a.o"},
		{"-O 2 -O2 a.o -G 8 -G8 b.o -G c.o --threads 4 --threads d.o", "a.o b.o c.o d.o"},
		{"--build-id a.o --unknown b.o -unknown2 c.o", "a.o b.o c.o"},
		{"-lc -l m --library=x --library y", "-lc -lm -lx -ly"},
		{"-lc -Bstatic -lc -Bdynamic -lc -static -lc", "-lc -lc(static) -lc -lc(static)"},
		{"--push-state -dn -la --pop-state -lb --pop-state -lc", "-la(static) -lb -lc"},
		{"-b binary a.o -b elf64-x86-64 b.o --format=binary c.o --format default d.o", "a.o(foreign) b.o c.o(foreign) d.o"},
		{"--form=binary a.o -form default b.o --forma binary c.o --format elf32-i386 d.o -b=binary e.o", "a.o(foreign) b.o c.o(foreign) d.o e.o"},
		{"--ou a.o --sc a.o --default-sc a.o --just-sym a.o -ju a.o -relo b.o -oua.o", "b.o"},
		{"--pu -Bstatic -la --po -lb", "-la(static) -lb"},
		{"--start-lib a.o --end-lib b.o", "a.o(lazy) b.o"},
		{"( a.o ) --start-group -( b.o -) --end-group", "( a.o ) b.o"},
		{"- a.o", "a.o"},
		{"a.o -o", "a.o"},
		{"-l", ""},
	} {
		l := Parse(strings.Fields(c.line), false)
		expect.Equal(t, c.want, inputs(l), "%s", c.line)
		expect.Equal(t, c.line, strings.Join(wordsOf(l.Args), " "))
	}
}

func TestLine(t *testing.T) {
	l := Parse(strings.Fields("-Lone -L two --library-path=three -L=four --sysroot=/root -r -o out -T a.lds --default-script=b.lds -c c.mri -Map=m --dependency-file d --why-extract=w -C directory a.o"), false)
	l.Args = nil
	want := &Line{
		Relocatable: true, Output: "out", Directory: "directory", Sysroot: "/root", Path: []string{"one", "two", "three", "=four"},
		Scripts: []string{"a.lds", "b.lds"}, Elsewhere: true,
	}
	expect.Equal(t, want, l)
	if !Parse([]string{"--relo", "a.o"}, false).Relocatable {
		t.Error("an abbreviation of --relocatable is not one")
	}
	if Parse([]string{"--version", "-v", "-o", "a.o"}, false).HasInputs() {
		t.Error("nothing is an input")
	}
}

func FuzzJoin(f *testing.F) {
	f.Add("a b", `'"\`, "")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		words := []string{a, b, c}
		expect.Equal(t, words, Split(Join(words)))
	})
}

func TestExpand(t *testing.T) {
	t.Chdir(t.TempDir())
	write := func(name, text string) {
		t.Helper()
		disk.Write(t, name, text)
	}
	write("one", `a @two "@three" @none`)
	write("two", "b 'c d'")
	write("three", "@two e @")
	write("self", "a @self")
	got, err := Expand([]string{"x", "@one", "y", "@", "@" + filepath.Join("no", "file")})
	want := []string{"x", "a", "b", "c d", "b", "c d", "e", "@", "@none", "y", "@", "@no/file"}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	expect.Equal(t, "response file self includes itself, or too much", expect.Failure(Expand([]string{"@self"})))
	// Two at each level: too many long before it is too deep.
	write("twice", "@twice @twice")
	if _, err := Expand([]string{"@twice"}); err == nil {
		t.Error("no error")
	}
}

func FuzzParse(f *testing.F) {
	f.Add("-o out a.o -lx --start-lib b.o --end-lib")
	f.Add("--push-state -Bstatic --pop-state --pop-state -z")
	f.Fuzz(func(t *testing.T, text string) {
		args := Split([]byte(text))
		if l := Parse(args, false); !slices.Equal(wordsOf(l.Args), args) {
			t.Errorf("%q: %q", args, wordsOf(l.Args))
		}
	})
}

// wordsOf returns those of all arguments.
func wordsOf(args []Arg) []string {
	var all []string
	for i := range args {
		all = append(all, args[i].Words...)
	}
	return all
}

// Each linker is given each flag with two objects behind it, and asked which it
// reads: where it reads the second alone, the first was a value. Where it reads
// none, it did not like the value, which tells nothing.
func TestValuesOfLinkers(t *testing.T) {
	tools.Long(t)
	tools.Need(t, "gcc")
	var all []string
	for _, name := range slices.Sorted(maps.Keys(longValues())) {
		all = append(all, "-"+name, "--"+name)
	}
	for _, name := range slices.Sorted(maps.Keys(longFlags())) {
		all = append(all, "-"+name, "--"+name)
	}
	for c := byte('A'); c <= 'z'; c++ {
		if c <= 'Z' || c >= 'a' {
			all = append(all, "-"+string(c))
		}
	}
	for _, l := range toolchains.AMD64.Newest() {
		if l.Family == "mold" {
			continue // It says of no file that it reads it.
		}
		linker := l.Path
		t.Run(linker, func(t *testing.T) {
			tools.Need(t, linker)
			help := tools.Must(t, linker, "--help")
			t.Chdir(t.TempDir())
			os.WriteFile("a.c", []byte("int a;"), 0o666)
			os.WriteFile("b.c", []byte("int b;"), 0o666)
			tools.Must(t, "gcc", "-c", "a.c", "b.c")
			object := disk.Read(t, "a.o")
			told := 0
			for _, name := range all {
				// Of names that begin with an o, one dash makes an output, for most.
				if known := strings.Contains(help, name); !known || onlyTwo(name) {
					continue
				}
				// The flag before may have had it for an output.
				disk.Write(t, "a.o", object)
				if check(t, linker, name) {
					told++
				}
			}
			if told < 40 {
				t.Errorf("only %d flags told anything", told)
			}
		})
	}
}

// onlyTwo reports whether the four disagree on what one dash makes of a name.
func onlyTwo(name string) bool {
	return len(name) > 2 && name[1] != '-' && (name[1] == 'o' || twoDashes()[name[1:]])
}

// check compares what a linker makes of a flag with what the table says.
func check(t *testing.T, linker, name string) (told bool) {
	t.Helper()
	args := []string{"--trace", "-r", "-o", filepath.Join(t.TempDir(), "out"), name, "a.o", "b.o"}
	out, _ := tools.Try(linker, args...)
	read := func(file string) bool { return slices.Contains(strings.Split(out, "\n"), file) }
	if name == "-R" || strings.HasSuffix(name, "-just-symbols") {
		return false // such a file is read, but is not an input
	}
	if !read("b.o") || strings.Contains(out, "unknown") || strings.Contains(out, "unrecognized") {
		return false
	}
	want := "a.o b.o"
	if !read("a.o") {
		want = "b.o"
	}
	var files []string
	for _, arg := range Parse(args, false).Args {
		if arg.Kind == Input {
			files = append(files, arg.Value)
		}
	}
	expect.Equal(t, want, strings.Join(files, " "), "%s a.o b.o: inputs", name)
	return true
}

// Random texts are divided as a GNU tool divides them, which names each word.
func TestResponseFilesOfGNUTools(t *testing.T) {
	tools.Need(t, "nm")
	t.Chdir(t.TempDir())
	const seed, texts = 20, 200
	r := rand.New(rand.NewPCG(seed, seed))
	words := 0
	for range texts {
		text := make([]byte, r.IntN(30))
		for i := range text {
			text[i] = "ab\\\"' \t\r\v\f"[r.IntN(10)]
		}
		disk.Write(t, "words", text)
		var want strings.Builder
		for _, word := range Split(text) {
			fmt.Fprintf(&want, "nm: '%s': No such file\n", word)
			words++
		}
		if words == 0 || want.Len() == 0 {
			continue // nm reads a.out then
		}
		if got, _, err := (tools.Command{AnyStatus: true, Env: []string{"LC_ALL=C"}}).Apart("sh", "-c", "exec nm @words 2>&1"); err != nil || got != want.String() {
			t.Errorf("%q: got %s, %v, want %s", text, got, err, &want)
		}
	}
	t.Logf("compared %d words of %d texts", words, texts)
}

// What Join writes, all linkers read.
func TestResponseFilesOfLinkers(t *testing.T) {
	tools.Need(t, "gcc")
	t.Chdir(t.TempDir())
	names := []string{"a b.o", "c'd.o", `e"f.o`, `g\h.o`, "i\tj.o", "@k.o", "$l.o"}
	for i, name := range names {
		os.WriteFile("a.c", []byte("int v"+string(rune('a'+i))+";"), 0o666)
		tools.Must(t, "gcc", "-c", "-o", name, "a.c")
	}
	for _, l := range toolchains.AMD64.Linkers() {
		linker := l.Path
		tools.Need(t, linker)
		words := append([]string{"-r", "-o", linker + ".o"}, names...)
		disk.Write(t, "words", Join(words))
		tools.Must(t, linker, "@words")
		symbols := tools.Must(t, "nm", "--format=just-symbols", linker+".o")
		for i := range names {
			if name := "v" + string(rune('a'+i)); !strings.Contains(symbols, name+"\n") {
				t.Errorf("%s: no %s of %q", linker, name, names[i])
			}
		}
	}
}
