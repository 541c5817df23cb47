package resolve

import (
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/itanium"
)

// Compilers append words to the name of a function that they have copied, cut
// into parts or renamed: gcc's clones (gcc/symtab.cc, clone_function_name), and
// clang's -funique-internal-linkage-names, ThinLTO and block sections. No source
// language but Go allows a dot there.

// numbered are the words that a number follows: f.isra.0.
var numbered = []string{
	"part", "isra", "constprop", "lto_priv", "cold", // gcc
	"llvm", "__uniq", "__part", // clang, which has cold.N too
}

// fold returns the name that a function has in its source. golang tells that the
// symbols may be Go's, where p.cold is the function cold of package p.
func fold(raw string, golang bool) string {
	if strings.IndexByte(raw, '.') <= 0 {
		return raw
	}
	name := trimClones(raw, golang)
	if strings.HasPrefix(raw[len(name):], ".__uniq.") {
		return itanium.StaticName(name)
	}
	return name
}

func trimClones(name string, golang bool) string {
	for {
		dot := strings.LastIndexByte(name, '.')
		if dot <= 0 {
			break
		}
		if name[dot:] == ".cold" && !golang {
			name = name[:dot]
			continue
		}
		word := name[:dot]
		before := strings.LastIndexByte(word, '.')
		if before <= 0 || !isNumber(name[dot+1:]) || !slices.Contains(numbered, word[before+1:]) {
			break
		}
		name = word[:before]
	}
	return name
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

// isGo reports whether an image holds what Go's linker puts into each.
func isGo(o *elfreloc.Object) bool {
	for i := range o.Sections {
		if strings.HasSuffix(o.Sections[i].Name, ".gopclntab") {
			return true
		}
	}
	return false
}

// The limits of Demangle, in bytes. The time that a made-up name takes grows with
// the square of its length: one within the limits takes less than a tenth of a second.
const (
	maxMangled   = 1 << 12
	maxDemangled = 16 // as a power of two
)

// Demangle returns a C++ (Itanium C++ ABI, 5.1) or Rust symbol as the source writes it,
// and any other name as it is. It takes bounded time for any name.
func Demangle(name string) (result string) {
	if len(name) > maxMangled || !strings.HasPrefix(name, "_Z") && !strings.HasPrefix(name, "_R") {
		return name
	}
	defer func() {
		if recover() != nil { // the name is anybody's, and the parser large
			result = name
		}
	}()
	return demangle.Filter(name, demangle.MaxLength(maxDemangled))
}
