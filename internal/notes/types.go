package notes

import (
	"debug/elf"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sdtconvert/arch"
)

// integerTypes are the type names of C and of systems' headers that are not made of
// C's own words. They are made when they are asked for: most runs have no use for them.
var integerTypes = sync.OnceValue(func() map[string]ArgType {
	return map[string]ArgType{
		"int8_t": {1, true}, "int16_t": {2, true}, "int32_t": {4, true}, "int64_t": {8, true},
		"uint8_t": {1, false}, "uint16_t": {2, false}, "uint32_t": {4, false}, "uint64_t": {8, false},
		"u_int8_t": {1, false}, "u_int16_t": {2, false}, "u_int32_t": {4, false}, "u_int64_t": {8, false},
		"__s8": {1, true}, "__s16": {2, true}, "__s32": {4, true}, "__s64": {8, true},
		"__u8": {1, false}, "__u16": {2, false}, "__u32": {4, false}, "__u64": {8, false},
		"s8": {1, true}, "s16": {2, true}, "s32": {4, true}, "s64": {8, true},
		"u8": {1, false}, "u16": {2, false}, "u32": {4, false}, "u64": {8, false},
		"u_char": {1, false}, "u_short": {2, false}, "u_int": {4, false}, "u_long": {long, false},
		"uchar": {1, false}, "ushort": {2, false}, "uint": {4, false}, "ulong": {long, false},
		"_Bool": {1, false}, "bool": {1, false}, "boolean_t": {4, false},
		"size_t": {pointer, false}, "ssize_t": {pointer, true}, "ptrdiff_t": {pointer, true},
		"intptr_t": {pointer, true}, "uintptr_t": {pointer, false}, "intmax_t": {8, true}, "uintmax_t": {8, false},
		"off_t": {long, true}, "time_t": {long, true}, "pid_t": {4, true}, "uid_t": {4, false}, "gid_t": {4, false},
		"float":   {4, false}, // the bits, which macros pass on
		"caddr_t": {pointer, false}, "register_t": {pointer, true}, "va_list": {pointer, false},
	}
})

// Sizes that are the machine's to choose.
const (
	long    = -1 // of a long
	pointer = -2
)

// typeWords are those that C makes the names of integer types of.
var typeWords = []string{"signed", "unsigned", "char", "short", "int", "long"}

// qualifiers say nothing of a type's width and sign.
var qualifiers = []string{"const", "volatile", "restrict", "__restrict", "_Atomic", "register"}

// cType is a type of C, whose size and sign may be the machine's to choose.
type cType struct {
	ArgType
	plainChar bool
}

// on returns the type on a machine.
func (t cType) on(m arch.Machine) ArgType {
	if t.plainChar {
		t.Signed = !m.Traits().CharUnsigned
	}
	switch t.Size {
	case long:
		t.Size = m.Traits().Model.Long
	case pointer:
		t.Size = m.Traits().Model.Pointer
	}
	return t.ArgType
}

// nonIntegerWords are the words of C for types that no integer register holds, or only two.
var nonIntegerWords = []string{"struct", "union", "class", "double", "_Complex", "__int128"}

// parseType finds the width and sign of a C type, as a string has it. The name of a
// parameter may stand behind it. It reports false for an unknown type, and
// one that is neither an integer nor a pointer.
func parseType(text string) (cType, bool) {
	if strings.ContainsAny(text, "*&[(") {
		return cType{ArgType: ArgType{Size: pointer}}, true
	}
	fields := strings.Fields(text)
	if slices.ContainsFunc(fields, func(s string) bool { return slices.Contains(nonIntegerWords, s) }) {
		return cType{}, false
	}
	fields = slices.DeleteFunc(fields, func(s string) bool { return slices.Contains(qualifiers, s) })
	if len(fields) == 0 {
		return cType{}, false
	}
	if fields[0] == "enum" {
		return cType{ArgType: ArgType{Size: 4}}, 2 <= len(fields) && len(fields) <= 3
	}
	if t, ok := integerTypes()[fields[0]]; ok {
		return cType{ArgType: t}, len(fields) <= 2
	}
	count := map[string]int{}
	n := 0
	for n < len(fields) && slices.Contains(typeWords, fields[n]) {
		count[fields[n]]++
		n++
	}
	if n == 0 || len(fields) > n+1 {
		return cType{}, false
	}
	return combine(count), true
}

// combine makes a type of the words that its name has.
func combine(count map[string]int) cType {
	t := cType{ArgType: ArgType{Size: 4, Signed: count["unsigned"] == 0}}
	switch {
	case count["char"] > 0:
		t.Size = 1
		t.plainChar = count["signed"]+count["unsigned"] == 0
	case count["short"] > 0:
		t.Size = 2
	case count["long"] > 1:
		t.Size = 8
	case count["long"] > 0:
		t.Size = long
	}
	return t
}

// NativeType finds the type of an argument by the name that the program has given it.
// One that is not known is a word: the macros pass nothing else.
func NativeType(name string, m arch.Machine) ArgType {
	if t, ok := parseType(name); ok {
		return t.on(m)
	}
	return ArgType{Size: m.Traits().WordSize()}
}

// IntegerType finds the type of an integer by its name. ok is false for others, also for enumerations, whose sign is the compiler's to choose.
func IntegerType(name string, m arch.Machine) (t ArgType, ok bool) {
	parsed, ok := parseType(name)
	isOther := func(word string) bool { return word == "float" || word == "enum" }
	return parsed.on(m), ok && !strings.ContainsAny(name, "*&[(") && !slices.ContainsFunc(strings.Fields(name), isOther)
}

// ArgumentType returns the type of an argument that a macro of probes passes on, by the
// name that the program has given it: at most a word, to which longer ones are cut.
func ArgumentType(name string, m arch.Machine) ArgType {
	t := NativeType(name, m)
	t.Size = min(t.Size, m.Traits().WordSize())
	return t
}

// ArgType is what a note says of an argument's type.
type ArgType struct {
	Size   int // bytes: 1, 2, 4 or 8; 0 for what is in no register of integers
	Signed bool
}

// Operands writes arguments as a note has them: where each is at a site of a form, in
// an object with data as its byte order. From the first on that the machine cannot tell
// the place of they are left out, for the number of one behind it would be wrong.
func Operands(m arch.Machine, form arch.Form, data elf.Data, types []ArgType) string {
	sizes := make([]int, len(types))
	for i, t := range types {
		sizes[i] = t.Size
	}
	ops := m.Traits().Operands(form, data, sizes)
	for i, place := range ops {
		size := sizes[i]
		if types[i].Signed {
			size = -size
		}
		ops[i] = fmt.Sprintf("%d@%s", size, place)
	}
	return strings.Join(ops, " ")
}

// WordTypes are as many words as there are registers: the arguments of a stub of
// which nothing is known.
func WordTypes(m arch.Machine) []ArgType {
	types := make([]ArgType, len(m.Traits().Arguments.Registers))
	for i := range types {
		types[i].Size = m.Traits().WordSize()
	}
	return types
}
