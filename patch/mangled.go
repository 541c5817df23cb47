package patch

// C++ mangles the names of variables that are local to functions or to namespaces
// (Itanium C++ ABI, 5.1.2 and 5.1.7): _ZZ <function> E <length> <name> [_<N>], and
// _ZN <namespaces> [L] <length> <name> E or _ZL <length> <name>.

import (
	"strconv"
	"strings"
)

// mangledPrefix is what all mangled names begin with, and a local one twice.
const (
	mangledPrefix = "_Z"
	mangledLocal  = "_ZZ"
)

// unmangle finds a wanted name at an offset of a mangled one, and the symbol of the
// function that it is local to, "" for none.
func unmangle(name string, at int, wanted map[string]bool) (object, function string, ok bool) {
	if at <= 0 || !strings.HasPrefix(name, mangledPrefix) {
		return "", "", false
	}
	// A digit before the length may belong to what stands before it.
	before := strings.TrimRight(name[:at], "0123456789")
	for from := len(before); from < at; from++ {
		length, err := strconv.Atoi(name[from:at])
		if err != nil || length > len(name)-at || name[from] == '0' || !wanted[name[at:at+length]] {
			continue
		}
		object = name[at : at+length]
		if strings.HasPrefix(name, mangledLocal) {
			function = localFunction(strings.TrimSuffix(name[len(mangledLocal):from], "L"))
		}
		return object, function, true
	}
	return "", "", false
}

// localFunction returns the symbol of the function whose encoding, and an E, stand before
// the name of a local variable. One of C is encoded as its name alone.
func localFunction(encoding string) string {
	encoding, ok := strings.CutSuffix(encoding, "E")
	if !ok {
		return ""
	}
	name := strings.TrimLeft(encoding, "0123456789")
	if length, err := strconv.Atoi(encoding[:len(encoding)-len(name)]); err == nil && length == len(name) {
		return name
	}
	return mangledPrefix + encoding
}

// sameFunction reports whether the function of a mangled name is that of a symbol:
// g++ has one name for all constructors of a class (C4), and for its destructors (D4).
func sameFunction(mangled, symbol string) bool {
	if mangled == symbol {
		return true
	}
	if len(mangled) != len(symbol) || !strings.HasPrefix(mangled, mangledPrefix) {
		return false
	}
	for i := range mangled {
		if mangled[i] != symbol[i] {
			return mangled[i] == '4' && (mangled[i-1] == 'C' || mangled[i-1] == 'D') && '0' <= symbol[i] && symbol[i] <= '5' && mangled[i+1:] == symbol[i+1:]
		}
	}
	return true
}
