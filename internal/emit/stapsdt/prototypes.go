package stapsdt

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"sdtconvert/arch"
)

// Prototypes are declarations of stubs or of probes' ids that a file holds, one a
// line:
//
//	void __dtrace_probe_tcp___send(struct tcpcb *, int, unsigned char);
//	tcp___drop(int reason)
//
// Lines that are empty, or begin with # or //, say nothing.
type Prototypes map[string]prototype

type prototype struct {
	line  int
	types []cType
}

// maxLine bounds the length of a line, in bytes.
const maxLine = 1 << 16

// ReadPrototypes reads a file of prototypes, whose name is for messages.
func ReadPrototypes(r io.Reader, file string) (Prototypes, error) {
	all := Prototypes{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "//") {
			continue
		}
		name, types, err := parsePrototype(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if first, twice := all[name]; twice {
			return nil, fmt.Errorf("%s:%d: %q is declared in line %d already", file, n, name, first.line)
		}
		all[name] = prototype{n, types}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
	}
	return all, nil
}

// parsePrototype divides a declaration into a name and the types of parameters.
func parsePrototype(text string) (name string, types []cType, err error) {
	text = strings.TrimSpace(strings.TrimSuffix(text, ";"))
	before, list, ok := strings.Cut(text, "(")
	if !ok || !strings.HasSuffix(list, ")") {
		return "", nil, fmt.Errorf("got %q, want a declaration: name(type, ...);", text)
	}
	list = list[:len(list)-1]
	words := strings.FieldsFunc(before, func(r rune) bool { return r == ' ' || r == '\t' || r == '*' })
	if len(words) == 0 {
		return "", nil, fmt.Errorf("a declaration without a name")
	}
	if name = words[len(words)-1]; !isName(name) {
		return "", nil, fmt.Errorf("%q is no name", name)
	}
	if list = strings.TrimSpace(list); list == "" || list == "void" {
		return name, nil, nil
	}
	types, err = splitParameters(list)
	return name, types, err
}

// splitParameters divides a list at the commas that are not in parentheses.
func splitParameters(list string) ([]cType, error) {
	var types []cType
	depth, start := 0, 0
	for i := 0; i <= len(list); i++ {
		switch {
		case i == len(list) || list[i] == ',' && depth == 0:
			text := strings.TrimSpace(list[start:i])
			typ, ok := parseType(text)
			if !ok {
				return nil, fmt.Errorf("parameter %d: %q is not known as an integer or a pointer; write what it stands for", len(types)+1, text)
			}
			types, start = append(types, typ), i+1
		case list[i] == '(':
			depth++
		case list[i] == ')':
			if depth--; depth < 0 {
				return nil, fmt.Errorf("parentheses do not match")
			}
		}
	}
	if depth != 0 {
		return nil, fmt.Errorf("parentheses do not match")
	}
	return types, nil
}

// isName reports whether a name may be that of a function.
func isName(name string) bool {
	for i, c := range name {
		letter := c == '_' || c == '$' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}

// Types returns the types of the arguments of a stub, under its name or the id of
// its probe, and whether there is a declaration.
func (p Prototypes) Types(m arch.Machine, stub, id string) ([]Type, bool) {
	declared, ok := p[stub]
	if !ok {
		if declared, ok = p[id]; !ok {
			return nil, false
		}
	}
	types := make([]Type, len(declared.types))
	for i, t := range declared.types {
		types[i] = t.on(m)
	}
	return types, true
}
