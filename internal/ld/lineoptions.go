package ld

import (
	"strings"
	"sync"
)

// The flags that take a value, of GNU ld, gold, lld and mold, as their --help and
// what they do with a file behind each say. One that a linker does not know is an
// error to it, so the four need not be told apart. What is missing here takes its
// value behind "=" alone, or none.
//
// Flags of which one linker takes the next word and another does not are in
// numbers: there the word is a value if it is a number.
var (
	longValues = wordsOnce(`
		architecture assert audit auxiliary call-graph-ordering-file chroot compress-debug-sections
		ctf-share-types debug default-script defsym depaudit dependency-file directory dT dynamic-linker
		dynamic-list entry error-handling-script error-limit exclude-libs export-dynamic-symbol
		export-dynamic-symbol-list filter fini flto-partition format fuse-ld hash-bucket-empty-fraction hash-size
		hash-style icf-iterations ignore-unresolved-symbol image-base in-implib incremental-base
		incremental-patch init just-symbols keep-unique library library-path load-pass-plugin
		lto-known-safe-vtables Map max-cache-size mllvm mri-script oformat opt-remarks-filename
		opt-remarks-format opt-remarks-hotness-threshold opt-remarks-passes orphan-handling out-implib
		output plugin plugin-opt print-symbol-counts print-symbol-order remap-inputs
		remap-inputs-file reproduce require-defined retain-symbols-file rosegment-gap rpath rpath-link
		rsp-quoting script section-ordering-file section-start soname sort-section spare-dynamic-tags
		split-stack-adjust-size stub-group-size symbol-ordering-file sysroot target2 task-link Tbss
		Tdata time-trace-granularity Tldata-segment trace-symbol Trodata-segment Ttext Ttext-segment
		undefined undefined-glob unresolved-symbols version-exports-section version-script
		warn-backrefs-exclude why-extract wrap`)

	// longFlags are those without a value that are looked for, or that begin with a
	// letter of shortValues, and that one dash may introduce.
	longFlags = wordsOnce(`
		Bdynamic Bstatic call_shared dn dy end-lib export-dynamic eh-frame-hdr fatal-warnings
		gc-sections no-whole-archive non_shared pop-state push-state relocatable start-lib static
		whole-archive`)

	// twoDashes are those that one dash makes a letter with a value of, for most.
	twoDashes = wordsOnce(`
		error-handling-script error-limit export-dynamic-symbol export-dynamic-symbol-list library
		library-path undefined-glob`)

	numbers = wordsOnce(`G gpsize threads thread-count thread-count-initial thread-count-middle thread-count-final`)
)

// shortValues are the letters whose value is the rest of the word, or the next one.
const shortValues = "aAbcCeFfhIlLmoOPRTuyYz"

// wordsOnce makes a set of words when it is asked for: most commands have no
// linker's command line to read.
func wordsOnce(text string) func() map[string]bool {
	return sync.OnceValue(func() map[string]bool {
		words := map[string]bool{}
		for _, w := range strings.Fields(text) {
			words[w] = true
		}
		return words
	})
}

// shortNames are the long names of letters, and of one another.
var shortNames = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"b": "format", "c": "mri-script", "C": "directory", "l": "library", "L": "library-path", "o": "output", "R": "just-symbols",
		"T": "script", "dT": "default-script", "i": "relocatable", "r": "relocatable", "Ur": "relocatable",
		"dn": "Bstatic", "non_shared": "Bstatic", "dy": "Bdynamic", "call_shared": "Bdynamic",
	}
})

// splitFlag takes a word that begins with a dash apart. name is the long name where
// there is one. next is whether the value is the next word.
func splitFlag(word string, following []string) (name, value string, next bool) {
	body, two := strings.CutPrefix(word, "--")
	if !two {
		body = word[1:]
	}
	name, value, equals := strings.Cut(body, "=")
	if two || name != "" && name[0] != 'o' {
		name = unabbreviated(name)
	}
	// -omagic is the output "magic": long names with an o take two dashes.
	long := len(name) > 1 && (two || name[0] != 'o' && !twoDashes()[name]) && (longValues()[name] || longFlags()[name] || longName(name))
	switch {
	case equals && (two || long):
		return canonicalFlag(name), value, false
	case long && longValues()[name]:
		return canonicalFlag(name), "", true
	case numbers()[name] && len(following) > 0 && isNumber(following[0]):
		return name, "", true
	case two || long:
		return canonicalFlag(name), "", false
	case body != "" && strings.IndexByte(shortValues, body[0]) >= 0:
		return canonicalFlag(body[:1]), body[1:], len(body) == 1
	}
	return canonicalFlag(body), "", false
}

// abbreviations are the shortest words by which GNU ld knows names that a look has to know: shorter ones
// are an error, as each of them is to the other linkers.
var abbreviations = sync.OnceValue(func() map[string]string {
	return map[string]string{
		"default-script": "default-sc", "dependency-file": "depe", "format": "form", "just-symbols": "ju", "mri-script": "mr",
		"output": "ou", "pop-state": "po", "push-state": "pu", "relocatable": "relo", "script": "sc", "sysroot": "sy",
	}
})

// unabbreviated returns the name that a word is short for, or the word.
func unabbreviated(word string) string {
	if longValues()[word] || longFlags()[word] {
		return word
	}
	for name, shortest := range abbreviations() {
		if strings.HasPrefix(word, shortest) && strings.HasPrefix(name, word) {
			return name
		}
	}
	return word
}

func longName(name string) bool { return len(name) > 1 && shortNames()[name] != "" }

func canonicalFlag(name string) string {
	if long := shortNames()[name]; long != "" {
		return long
	}
	return name
}

func isNumber(word string) bool {
	return word != "" && strings.Trim(word, "0123456789") == ""
}
