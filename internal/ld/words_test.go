package ld

import (
	"debug/elf"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/ld/line"
	"sdtconvert/internal/testkit/expect"
)

// The inputs of these tests are called after what is in them.
var (
	object  = linkInput{typ: filetype.ELF, elf: elf.ET_REL, names: true, probes: true}
	plain   = linkInput{typ: filetype.ELF, elf: elf.ET_REL}
	archive = linkInput{typ: filetype.Archive, names: true, probes: true}
	shared  = linkInput{typ: filetype.ELF, elf: elf.ET_DYN}
)

// reading returns a line, and what is in its inputs: an object with probes is called
// object.o, or object1.o.
func reading(words string) (*line.Line, scanned) {
	ln := line.Parse(strings.Fields(words), line.GNURules)
	all := scanned{byArg: map[int]*linkInput{}}
	for i := range ln.Args {
		if ln.Args[i].Kind != line.Input {
			continue
		}
		name := ln.Args[i].Value
		kinds := map[string]linkInput{"object": object, "plain": plain, "archive": archive, "shared": shared, "gcc": lateGCC, "llvm": lateLLVM}
		in := kinds[strings.Trim(name[:strings.LastIndexByte(name, '.')], "0123456789")]
		in.named = named{path: name, file: name}
		all.inputs = append(all.inputs, &in)
		all.byArg[i] = &in
	}
	return ln, all
}

func TestPlaceOfAddedObject(t *testing.T) {
	for _, test := range []struct{ words, before string }{
		{"object.o plain.o", "plain.o"},
		{"plain.o object1.o -lm object2.o -lc", "-lc"},
		{"plain.o object.o archive.a", "archive.a"}, // else the archive's members would come first
		{"plain.o archive.a archive1.a -lc", "archive.a"},
		{"archive.a object.o", "the end"},
		{"plain.o --start-lib object1.o object2.o --end-lib -lc", "--start-lib"},
		{"object.o --start-lib object1.o --end-lib -lc", "--start-lib"},
		{"shared.so plain.o", "the end"},
		{"-o object.o plain.o", "the end"},
	} {
		ln, inputs := reading(test.words)
		at := place(ln.Args, inputs.byArg, nil)
		before := "the end"
		if at < len(ln.Args) {
			before = ln.Args[at].Words[0]
		}
		expect.Equal(t, test.before, before, "%s: goes before", test.words)
	}
}

func TestPlaceBehindGeneratedCode(t *testing.T) {
	for words, want := range map[string]int{
		"llvm1.o plain.o llvm2.o archive.a": 1,
		"gcc1.o plain.o gcc2.o archive.a":   3, // where the last of the objects was
	} {
		ln, inputs := reading(words)
		expect.Equal(t, want, place(ln.Args, inputs.byArg, map[int][]string{0: {"code.o"}, 2: nil}), "%s: the argument that it goes before", words)
	}
}

func TestWords(t *testing.T) {
	const words = "-o out object.o plain.o -lc object.o gcc1.o gcc2.o --Map=x"
	ln, inputs := reading(words)
	for _, test := range []struct {
		stand substitutions
		want  string
	}{
		{substitutions{}, words},
		{substitutions{copies: map[string]string{"object.o": "/t/object.o"}}, "-o out /t/object.o plain.o -lc /t/object.o gcc1.o gcc2.o --Map=x"},
		{substitutions{generated: map[int][]string{5: {"/t/1", "/t/2"}, 6: nil}}, "-o out object.o plain.o -lc object.o /t/1 /t/2 --Map=x"},
		{substitutions{added: &addition{"/t/s.o", 0}}, "/t/s.o " + words},
		{substitutions{flags: []string{"-u", "x"}, added: &addition{"/t/s.o", 0}}, "-u x /t/s.o " + words},
		{substitutions{added: &addition{"/t/s.o", 3}}, "-o out object.o plain.o /t/s.o -lc object.o gcc1.o gcc2.o --Map=x"},
		{substitutions{added: &addition{"/t/s.o", len(ln.Args)}}, words + " /t/s.o"},
	} {
		if got := test.stand.words(ln, inputs.byArg); !slices.Equal(got, strings.Fields(test.want)) {
			t.Errorf("%+v: %q, want %s", test.stand, got, test.want)
		}
	}
}

func TestNothingStandsIn(t *testing.T) {
	if !(substitutions{copies: map[string]string{}}).none() {
		t.Error("no copy is a copy")
	}
	for _, s := range []substitutions{{copies: map[string]string{"a": "b"}}, {generated: map[int][]string{}}, {added: &addition{}}} {
		if s.none() {
			t.Errorf("%+v is nothing", s)
		}
	}
}

// Code stands where the first of what it was made of was.
func TestGeneratedCodeStandsForAll(t *testing.T) {
	ln, inputs := reading("plain.o gcc1.o object.o gcc2.o --start-lib gcc3.o --end-lib")
	stand := substitutions{generated: replacements(ln, inputs.byArg, input.GCC, []string{"/t/1", "/t/2"})}
	want := "plain.o /t/1 /t/2 object.o --start-lib gcc3.o --end-lib"
	expect.Equal(t, want, strings.Join(stand.words(ln, inputs.byArg), " "))
}

func TestWordsForGCCsPlugin(t *testing.T) {
	ln, inputs := reading("-plugin p.so -plugin-opt=-fresolution=r -plugin-opt=-pass-through=-lc -m elf_x86_64 -o out plain.o gcc1.o -lc gcc2.o")
	got := strings.Join(wordsGCC(ln, inputs.byArg, "/t"), " ")
	want := "-r -o /t/code.o -plugin p.so -plugin-opt=-linker-output-known -plugin-opt=-fresolution=r -m elf_x86_64 gcc1.o gcc2.o"
	expect.Equal(t, want, got)
}
