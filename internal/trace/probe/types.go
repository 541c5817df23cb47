package probe

import (
	"cmp"
	"encoding/binary"
	"regexp"
	"slices"
	"strings"
	"sync"

	"sdtconvert/arch"
	"sdtconvert/image"
	"sdtconvert/internal/debuginfo"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/message"
	"sdtconvert/internal/notes"
	"sdtconvert/internal/sites"
	"sdtconvert/linkerset"
)

// Parameter is an argument of a probe as a provider file declares it. Length names the parameter that has its length, "" for none.
type Parameter struct{ Type, Name, Length string }

// Declarations are the parameters of probes, by provider:name.
type Declarations map[string][]Parameter

// foundSite is a site whose arguments are not known yet.
type foundSite struct {
	*Site
	from       *sites.Site
	probe      linkerset.Probe
	types      []Parameter
	unrecorded bool // the program has not recorded the types
}

// describe finds the arguments of sites. Their types are recorded in the program, else declared in a provider file, else in debug
// information with the stub.
func (f *Finder) describe(m *image.Module, code *locate.Code, found []*foundSite, reader *arch.OperandReader) {
	var undeclared, aliases []string
	stubs := func(s *foundSite) (names []string) {
		id := cmp.Or(s.probe.ID, strings.ReplaceAll(s.Provider+"___"+s.Name, "-", "__"))
		for _, prefix := range f.Options.Options.Names.Prefixes {
			names = append(names, prefix+id)
		}
		return names
	}
	for _, s := range found {
		declared := f.Declarations[s.Provider+":"+s.Name]
		for _, a := range s.probe.Args {
			if a.Index == len(s.types) {
				s.types = append(s.types, Parameter{Type: a.Native})
			}
		}
		if s.unrecorded = len(s.types) == 0; s.unrecorded {
			s.types = slices.Clone(declared)
		}
		names := map[string]bool{"": true}
		for i := range min(len(s.types), len(declared)) {
			s.types[i].Length = declared[i].Length
			if s.types[i].Name = declared[i].Name; names[declared[i].Name] {
				s.types[i].Name = ""
			}
			names[declared[i].Name] = true
		}
		if len(s.types) == 0 && s.from.Source == sites.FromRecord { // SystemTap's header declares no stub
			undeclared = append(undeclared, stubs(s)...)
		}
		for _, t := range s.types {
			if name := aliasName(t.Type); name != "" {
				aliases = append(aliases, name)
			}
		}
	}
	known := readTypes(code, undeclared, aliases)
	for _, s := range found {
		var types []debuginfo.Type
		for _, name := range stubs(s) {
			if len(s.types) == 0 && types == nil {
				types = known.parameters[name]
			}
		}
		declared := f.Declarations[s.Provider+":"+s.Name]
		for i, t := range s.types {
			typ := known.aliases[aliasName(t.Type)]
			if typ.Name == "" && aliasName(t.Type) != "" && i < len(declared) {
				typ.Name = declared[i].Type
			}
			typ.Name = cmp.Or(typ.Name, t.Type)
			types = append(types, typ)
		}
		s.Arguments = arguments(m, s, types, reader)
		for i := range min(len(s.Arguments), len(s.types)) {
			s.Arguments[i].Name = message.Escape(s.types[i].Name)
			if n := lengthOf(s.types, i); s.Arguments[i].Format == Text && n < len(s.Arguments) && n >= 0 && s.Arguments[n].Format != Unreadable {
				s.Arguments[i].Length = n + 1
			}
		}
		s.Layout = NewLayout(s.Arguments, reader.Threads.SP)
	}
}

// lengthOf returns the index of the parameter that has the length of a text, as it says itself or by its name. It is -1 for none.
func lengthOf(parameters []Parameter, i int) int {
	if length := parameters[i].Length; length != "" {
		return slices.IndexFunc(parameters, func(p Parameter) bool { return p.Name == length })
	}
	if i+1 < len(parameters) && isLength(parameters[i].Name, parameters[i+1].Name) {
		return i + 1
	}
	return -1
}

// isLength reports whether an argument is named as the length of the text before it: name_len, name_length or name_size.
func isLength(text, length string) bool {
	rest, ok := strings.CutPrefix(length, text)
	return ok && text != "" && slices.Contains([]string{"len", "length", "size"}, strings.TrimPrefix(rest, "_"))
}

// debugTypes are types of a module's debug information.
type debugTypes struct {
	parameters map[string][]debuginfo.Type // by function
	aliases    map[string]debuginfo.Type
}

// readTypes reads the types that are wanted, if there are any. Debug information that makes no sense tells none.
func readTypes(code *locate.Code, functions, aliases []string) (known debugTypes) {
	if len(functions)+len(aliases) == 0 {
		return known
	}
	lines := code.ReadLines()
	if lines == nil {
		return known
	}
	set := func(names []string) func(string) bool {
		slices.Sort(names)
		return func(name string) bool {
			_, found := slices.BinarySearch(names, name)
			return found
		}
	}
	if len(functions) > 0 {
		known.parameters, _ = lines.DeclaredTypes(set(functions), len(slices.Compact(slices.Sorted(slices.Values(functions)))))
	}
	if len(aliases) > 0 {
		known.aliases, _ = lines.Types(set(aliases))
	}
	return known
}

// integers matches the names of types of which nothing else is to be known.
var integers = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(u?int\w*_t|s?size_t|\w?id_t|off_t|time_t|mode_t|dev_t|ino_t|ptrdiff_t|bool|_Bool|boolean_t|u?int|u?long|u?short|u?char|string|float|double|void|signed|unsigned)$`)
})

// aliasName returns the name of a type that may be an enumeration or another type, "" for others.
func aliasName(typ string) string {
	words := strings.Fields(typ)
	words = slices.DeleteFunc(words, func(w string) bool { return w == "const" || w == "volatile" || w == "enum" })
	if len(words) != 1 || strings.ContainsAny(words[0], "*[&") || integers().MatchString(words[0]) {
		return ""
	}
	return words[0]
}

// arguments returns the arguments of a site. If a call's arguments were not known when it was converted, its note has all registers that may
// hold one: they are shown only as far as types are known now.
func arguments(m *image.Module, s *foundSite, types []debuginfo.Type, reader *arch.OperandReader) (all []Argument) {
	machine, data := m.Image.Machine(), orderData(m.Image.Encoding().Order)
	hasAllRegisters := s.unrecorded && s.from.Note != nil && s.from.Note.Args == notes.Operands(machine, s.Form.Form, data, notes.WordTypes(machine))
	if hasAllRegisters && len(types) == 0 {
		return nil
	}
	text := s.from.Operands()
	if hasAllRegisters || s.from.Note == nil && text == "" && len(types) > 0 && hasCallArguments(m, s.from) {
		var argTypes []notes.ArgType
		for _, typ := range types {
			argTypes = append(argTypes, notes.ArgumentType(typ.Name, machine))
		}
		text = notes.Operands(machine, s.Form.Form, data, argTypes)
	}
	for i, operand := range reader.Read(text) {
		if i == MaxArguments {
			break
		}
		a := Argument{Operand: operand}
		if i < len(types) {
			a.Type, a.Enumerators = types[i].Name, escaped(types[i].Enumerators)
		}
		a.Format = formatOf(a.Type, &operand, m.Image.Encoding().Word())
		if t, ok := notes.IntegerType(a.Type, machine); ok && a.Format != Float && a.Format != Unreadable && a.Kind != arch.InVector && t.Size <= a.Size {
			// Headers pass an int as a word, too.
			if a.Kind == arch.InMemory && m.Image.Encoding().Order == binary.ByteOrder(binary.BigEndian) {
				a.Value += uint64(a.Size - t.Size)
			}
			a.Size, a.Signed = t.Size, t.Signed
		}
		all = append(all, a)
	}
	return all
}

// escaped returns the names of an enumeration's values, as they are shown.
func escaped(names map[int64]string) map[int64]string {
	if names == nil {
		return nil
	}
	all := map[int64]string{}
	for value, name := range names {
		all[value] = message.Escape(name)
	}
	return all
}

// hasCallArguments reports whether the arguments of a site without a note are in the registers of a call. A NOP that the source has may have its
// arguments anywhere.
func hasCallArguments(m *image.Module, from *sites.Site) bool {
	if from.Row != nil {
		return !from.Row.IsNop
	}
	nops := m.Image.Machine().Traits().Nops
	code, err := m.Image.Bytes(from.Address, uint64(len(nops[0])))
	return err == nil && !slices.ContainsFunc(nops, func(nop []byte) bool { return slices.Equal(nop, code) })
}
