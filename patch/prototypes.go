package patch

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/internal/emit/stapsdt"
)

// Prototypes are the types of stubs' parameters, in their order and as C writes them,
// by the name of the stub or by the ID of its probe. Those under the stub's name are
// preferred. A type that is not known as an integer or a pointer is taken for a word.
type Prototypes map[string][]string

// types returns the types of the arguments of a stub, and whether they are known.
func (prototypes Prototypes) types(s *Stub, m arch.Machine) ([]stapsdt.Type, bool) {
	params, ok := prototypes[s.Name]
	if !ok {
		if params, ok = prototypes[s.ID]; !ok {
			return nil, false
		}
	}
	types := make([]stapsdt.Type, len(params))
	for i, text := range params {
		types[i] = stapsdt.Native(text, m)
	}
	return types, true
}

// maxLine bounds the length of a line, in bytes.
const maxLine = 1 << 16

// ReadPrototypes reads declarations of stubs, or of IDs of probes, one a line:
//
//	void __dtrace_probe_tcp___send(struct tcpcb *, int, unsigned char);
//	tcp___drop(int reason)
//
// Lines that are empty, or begin with # or //, say nothing. Every type has to be
// known as an integer or a pointer; the name of a parameter stays behind it. file is the name of
// what is read, for errors, which begin with it and the number of the line.
func ReadPrototypes(r io.Reader, file string) (Prototypes, error) {
	prototypes, declared := Prototypes{}, map[string]int{} // in which line
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	n := 0
	for lines.Scan() {
		n++
		text := strings.TrimSpace(lines.Text())
		if text == "" || strings.HasPrefix(text, "#") || strings.HasPrefix(text, "//") {
			continue
		}
		name, params, err := parsePrototype(text)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, n, err)
		}
		if first, twice := declared[name]; twice {
			return nil, fmt.Errorf("%s:%d: %q is declared in line %d already", file, n, name, first)
		}
		prototypes[name], declared[name] = params, n
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", file, n+1, err)
	}
	return prototypes, nil
}

// parsePrototype divides a declaration into a name and the types of parameters.
func parsePrototype(text string) (name string, params []string, err error) {
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
		return "", nil, fmt.Errorf("%q is not a name", name)
	}
	if list = strings.TrimSpace(list); list == "" || list == "void" {
		return name, nil, nil
	}
	params, err = splitParameters(list)
	return name, params, err
}

// splitParameters divides a list at the commas that are not in parentheses.
func splitParameters(list string) ([]string, error) {
	var params []string
	depth, start := 0, 0
	for i := 0; i <= len(list); i++ {
		switch {
		case i == len(list) || list[i] == ',' && depth == 0:
			text := strings.TrimSpace(list[start:i])
			if !stapsdt.IsKnown(text) {
				return nil, fmt.Errorf("parameter %d: %q is not known as an integer or a pointer; write what it stands for", len(params)+1, text)
			}
			params, start = append(params, text), i+1
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
	return params, nil
}

// isName reports whether a word may name a function.
func isName(name string) bool {
	for i, c := range name {
		letter := c == '_' || c == '$' || 'a' <= c|0x20 && c|0x20 <= 'z' || c >= 0x80
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return name != ""
}
