// Package itanium reads the names that compilers of C++ give to what is local to a function or to a
// file (Itanium C++ ABI, 5.1.2 and 5.1.7): _ZZ <function> E <length> <name> [_<N>],
// _ZN <namespaces> [L] <length> <name> E and _ZL <length> <name>.
package itanium

import (
	"iter"
	"strconv"
	"strings"
)

// Prefix is what all mangled names begin with, and localPrefix what those of variables of functions begin with.
const (
	Prefix      = "_Z"
	localPrefix = "_ZZ"
)

const digits = "0123456789"

// Identifiers returns the names of the source that may be at an offset of a symbol, each with the offset where its
// length begins. There may be several, because a digit before the length may belong to what stands before it.
func Identifiers(symbol string, at int) iter.Seq2[int, string] {
	return func(yield func(int, string) bool) {
		if at <= 0 || !strings.HasPrefix(symbol, Prefix) {
			return
		}
		for from := len(strings.TrimRight(symbol[:at], digits)); from < at; from++ {
			length, err := strconv.Atoi(symbol[from:at])
			if err == nil && length <= len(symbol)-at && symbol[from] != '0' && !yield(from, symbol[at:at+length]) {
				return
			}
		}
	}
}

// first returns the name of the source that begins an encoding, and what stands behind it.
func first(encoding string) (name, behind string, ok bool) {
	name = strings.TrimLeft(encoding, digits)
	n, err := strconv.Atoi(encoding[:len(encoding)-len(name)])
	if err != nil || n <= 0 || n > len(name) {
		return "", "", false
	}
	return name[:n], name[n:], true
}

// FunctionOf returns the symbol of the function that a variable is local to, or "". The length of the variable's name
// begins at an offset of its symbol. A function of C is encoded as its name alone.
func FunctionOf(symbol string, length int) string {
	encoding, isLocal := strings.CutPrefix(symbol[:length], localPrefix)
	encoding, ended := strings.CutSuffix(strings.TrimSuffix(encoding, "L"), "E")
	if !isLocal || !ended {
		return ""
	}
	if name, behind, ok := first(encoding); ok && behind == "" {
		return name
	}
	return Prefix + encoding
}

// IsSameFunction reports whether the function of a mangled name is that of a symbol:
// g++ has one name for all constructors of a class (C4), and for its destructors (D4).
func IsSameFunction(mangled, symbol string) bool {
	if mangled == symbol {
		return true
	}
	if len(mangled) != len(symbol) || !strings.HasPrefix(mangled, Prefix) {
		return false
	}
	for i := range mangled {
		if mangled[i] != symbol[i] {
			return mangled[i] == '4' && (mangled[i-1] == 'C' || mangled[i-1] == 'D') && '0' <= symbol[i] && symbol[i] <= '5' && mangled[i+1:] == symbol[i+1:]
		}
	}
	return true
}

// StaticName returns the name that a static function has in its source, without its parameters, or
// another name as it is. clang gives such names also to functions of C that it makes unique: f(int) is _ZL1fi then.
func StaticName(symbol string) string {
	if encoding, ok := strings.CutPrefix(symbol, Prefix+"L"); ok {
		if name, _, ok := first(encoding); ok {
			return name
		}
	}
	return symbol
}
