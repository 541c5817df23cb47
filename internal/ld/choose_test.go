package ld

import (
	"errors"
	"os"
	"strings"
	"testing"

	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
)

var (
	lateGCC  = linkInput{typ: filetype.ELF, elf: object.elf, names: true, probes: true, late: input.LateCode{Compiler: input.GCC, Probes: 1}}
	lateLLVM = linkInput{typ: filetype.Bitcode, names: true, probes: true, late: input.LateCode{Compiler: input.LLVM}}
)

// paths are those of inputs.
func pathsOf(inputs []*linkInput) string {
	var all []string
	for _, in := range inputs {
		all = append(all, in.path)
	}
	return strings.Join(all, " ")
}

func TestChoice(t *testing.T) {
	const plugin = "-plugin liblto_plugin.so "
	for _, test := range []struct {
		linker, words string
		gcc, inPlace  bool
		unanchored    bool
		convert, late string
		by            generator
		refused       string // the beginning of each refusal
	}{
		{words: "plain.o shared.so"},
		{words: "plain.o object1.o archive.a object2.o -lm", convert: "object1.o archive.a object2.o"},
		{words: "object1.o", inPlace: true, convert: "object1.o"},
		{linker: "ld", words: plugin + "gcc1.o object.o", gcc: true, convert: "object.o", late: "gcc1.o", by: byGCC},
		{linker: "ld", words: plugin + "gcc1.o", late: "gcc1.o", refused: "gcc1.o: is GCC link-time"}, // it is not known how
		{linker: "ld", words: "gcc1.o gcc2.o", gcc: true, late: "gcc1.o gcc2.o", refused: "gcc1.o: is GCC link-time\ngcc2.o: is GCC link-time"},
		{linker: "mold", words: plugin + "gcc1.o", gcc: true, late: "gcc1.o", refused: "gcc1.o: is GCC link-time"},
		{linker: "ld.lld-20", words: plugin + "gcc1.o", gcc: true, late: "gcc1.o", refused: "gcc1.o: is GCC link-time"},
		{linker: "ld.lld-20", words: "llvm.o object.o", convert: "object.o", late: "llvm.o", by: byLLD},
		{linker: "ld.gold", words: plugin + "llvm.o", gcc: true, late: "llvm.o", refused: "llvm.o: is LLVM link-time"},
		{linker: "ld.lld", words: "--start-lib llvm.o --end-lib", late: "llvm.o", by: byLLD, refused: "llvm.o: is link-time optimisation code that holds probes, between"},
		{words: "--gc-sections plain.o", unanchored: true},
		{words: "--gc-sections object.o", convert: "object.o"},
		{words: "--gc-sections object.o", unanchored: true, convert: "object.o", refused: "--drop-relocations: --gc-sections would"},
		{words: "--gc-sections --no-gc-sections --icf=none object.o", unanchored: true, convert: "object.o"},
		{linker: "ld.lld", words: "--icf=safe object.o", unanchored: true, convert: "object.o", refused: "--drop-relocations: --icf would"},
		{linker: "ld.gold", words: "-r --icf=all object.o", unanchored: true, convert: "object.o"},
	} {
		ln, inputs := reading(test.words)
		c := chooser{Line: ln, inPlace: test.inPlace, linker: linker{path: test.linker}, gcc: test.gcc, unanchored: test.unanchored}
		chosen, errs := choose(c, inputs)
		expect.Equal(t, test.convert, pathsOf(chosen.convert), "%s %s: converts", test.linker, test.words)
		if got := pathsOf(chosen.late); got != test.late || chosen.by != test.by {
			t.Errorf("%s %s: generates %q by %d, want %q by %d", test.linker, test.words, got, chosen.by, test.late, test.by)
		}
		checkRefusals(t, test.linker+" "+test.words, errs, test.refused)
	}
}

func checkRefusals(t *testing.T, what string, errs []error, want string) {
	t.Helper()
	var beginnings []string
	if want != "" {
		beginnings = strings.Split(want, "\n")
	}
	if len(errs) != len(beginnings) {
		t.Errorf("%s: %d refusals, want %d: %v", what, len(errs), len(beginnings), errs)
		return
	}
	for i, err := range errs {
		if !strings.HasPrefix(err.Error(), beginnings[i]) {
			t.Errorf("%s: %v, want %s", what, err, beginnings[i])
		}
	}
}

func TestRefusedInputs(t *testing.T) {
	t.Chdir(t.TempDir())
	disk.Write(t, "object.o", "")
	broken, byScript := object, object
	broken.err = errors.New("broken.o: is broken")
	byScript.named = named{"there.o", "there.o", "inputs.ld"}
	lateByScript := byScript
	lateByScript.late.Compiler = input.GCC
	for _, test := range []struct {
		words   string
		more    *linkInput
		inPlace bool
		refused string
	}{
		{words: "-o object.o object.o", refused: "object.o: is the output too"},
		{words: "-o ./object.o plain.o object.o", refused: "object.o: is the output too"},
		{words: "-o object.o object.o", inPlace: true},
		{words: "object1.o", more: &broken, refused: "broken.o: is broken"},
		{words: "object1.o", more: &byScript},
		{words: "object1.o", more: &lateByScript, refused: "inputs.ld: names there.o, which is link-time optimisation code"},
		{words: "object1.o", more: &byScript, inPlace: true},
	} {
		ln, inputs := reading(test.words)
		if test.more != nil {
			inputs.inputs = append(inputs.inputs, test.more)
		}
		for _, in := range inputs.inputs {
			in.info, _ = os.Stat(in.file)
		}
		_, errs := choose(chooser{Line: ln, inPlace: test.inPlace}, inputs)
		checkRefusals(t, test.words, errs, test.refused)
	}
}
