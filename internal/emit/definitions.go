package emit

import (
	"cmp"
	"debug/elf"
	"fmt"
	"maps"
	"slices"

	"sdtconvert/arch"
	"sdtconvert/arch/machines"
	"sdtconvert/elfreloc"
	"sdtconvert/linkerset"
)

// stubsSource is what the object names as its source file, by which it is recognised.
const stubsSource = "sdtconvert-stubs"

// Object makes the object.
func (n *Requirements) Object() ([]byte, error) {
	if n.empty == nil {
		return nil, ErrNoObject
	}
	a, err := NewObject(n.empty, n.machine, stubsSource)
	if err != nil {
		return nil, err
	}
	n.write(a)
	return a.Bytes()
}

// Source makes the source of the same object.
func (n *Requirements) Source() ([]byte, error) {
	if n.empty == nil {
		return nil, ErrNoObject
	}
	a := newSourceText(n.empty.Encoding.Word(), stubsSource, "Probe objects and stubs that a link needs, made by sdtconvert.")
	n.write(a)
	return a.Bytes(), a.Err()
}

// missing lists the probes that have no definition, sorted by name.
func (n *Requirements) missing() []*missingProbe {
	var missing []*missingProbe
	for name, p := range n.probes {
		if _, defined := n.defined[name]; !defined && (p.hidden || !n.exported[name]) {
			missing = append(missing, p)
		}
	}
	slices.SortFunc(missing, func(a, b *missingProbe) int { return cmp.Compare(a.object, b.object) })
	return missing
}

func (n *Requirements) write(a assembler) {
	w := &definitionWriter{assembler: a, word: n.empty.Encoding.Word(), labels: n.machine != nil && n.machine.Traits().NamedNone}
	probes := n.missing()
	providers := map[string]bool{}
	for _, p := range probes {
		provider, _ := linkerset.SplitID(p.id)
		providers[provider] = true
	}
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		if object := providerPrefix + name; !n.defined[object] && !n.exported[object] {
			// A struct sdt_provider: name, prov_entry, id, sdt_refs.
			text := w.begin(Symbol{Name: object, Bind: elf.STB_WEAK, Type: elf.STT_OBJECT, Size: uint64(5 * w.word)}, "set_sdt_providers_set")
			w.Word(text, 0)
			w.Zero(4 * w.word)
			w.end(text, name)
		}
	}
	for _, p := range probes {
		w.probe(p)
	}
	for kind := range arch.Kinds {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(n.stubs)) {
			if _, defined := n.defined[name]; n.stubs[name] == kind && !defined {
				names = append(names, name)
			}
		}
		if len(names) > 0 {
			w.function(kind, &n.machine.Traits().Conventions, n.machine.Stub(arch.Stub{Kind: kind, LandingPad: n.notes.landingPad(), Thunk: n.thunk}), names)
		}
	}
	if len(n.references) > 0 {
		const exclude = 0x80000000 // SHF_EXCLUDE (gABI): no linker puts the section into its output
		w.Section(Section{Name: ".sdtconvert.references", Type: elf.SHT_PROGBITS, Flags: exclude, Align: uint64(w.word)})
		for _, name := range n.references {
			w.Word(name, 0)
		}
	}
	if n.machine != nil {
		w.descriptors(&n.machine.Traits().Conventions)
	}
	n.notes.Write(a, w.word)
}

type definitionWriter struct {
	assembler
	word   int
	labels bool // entries of linker sets need symbols (Traits.NamedNone)
	count  int  // of objects so far
	code   []namedText
}

// namedText is a function's code that is still to be given a descriptor.
type namedText struct {
	label string
	size  uint64
	names []string
}

const probeFlags = elf.SHF_ALLOC | elf.SHF_WRITE

// begin begins a structure with its entry in a linker set, and returns a label for its
// string.
func (w *definitionWriter) begin(symbol Symbol, set string) (text string) {
	w.count++
	self := fmt.Sprintf(".Lsdt_object%d", w.count)
	entry := fmt.Sprintf(".Lsdt_entry%d", w.count)
	w.Section(Section{Name: set, Type: elf.SHT_PROGBITS, Flags: probeFlags, Align: uint64(w.word), Group: symbol.Name})
	if w.labels {
		// Assemblers make sections and offsets of local symbols.
		entry = "_." + set + "." + symbol.Name
		w.Symbol(Symbol{Name: entry, Bind: elf.STB_WEAK, Type: elf.STT_OBJECT, Hidden: true, Size: uint64(w.word)})
	} else {
		w.Label(entry)
	}
	w.Word(self, 0)
	w.Section(Section{Name: ".data." + symbol.Name, Type: elf.SHT_PROGBITS, Flags: probeFlags, Align: uint64(w.word), Group: symbol.Name})
	w.Symbol(symbol)
	w.Label(self)
	w.Keep(self, entry)
	return fmt.Sprintf(".Lsdt_string%d", w.count)
}

// probe writes a struct sdt_probe: version, prov, probe_entry, argtype_list, mod,
// func, name, id, n_args, sdtp_lf. Module and function are empty: the NUL behind
// the name.
func (w *definitionWriter) probe(p *missingProbe) {
	provider, name := linkerset.SplitID(p.id)
	size := 12 * w.word
	text := w.begin(Symbol{Name: p.object, Bind: elf.STB_WEAK, Type: elf.STT_OBJECT, Hidden: p.hidden, Size: uint64(size)}, "set_sdt_probes_set")
	w.Int(uint32(size))
	w.Align(w.word)
	w.Word(providerPrefix+provider, 0)
	w.Zero(4 * w.word)
	w.Word(text, int64(len(name)))
	w.Word(text, int64(len(name)))
	w.Word(text, 0)
	w.Zero(3 * w.word)
	w.end(text, name)
}

func (w *definitionWriter) end(label, text string) {
	w.Label(label)
	w.String(text)
}

// functionSections are the sections of the functions that stubs become, by kind. That of tests
// has the name, and nearly the contents, of what converted tail calls jump to.
var functionSections = [arch.Kinds]string{arch.Probe: ".text.__sdt_nothing", arch.Enabled: ".text.__sdt_return_0"}

// function writes a function that has all the names. Where functions have descriptors
// descriptors has them.
func (w *definitionWriter) function(kind arch.Kind, c *arch.Conventions, code []arch.Insn, names []string) {
	size := 0
	for _, i := range code {
		size += len(i.Code)
	}
	text := Section{Name: functionSections[kind], Type: elf.SHT_PROGBITS, Flags: elf.SHF_ALLOC | elf.SHF_EXECINSTR, Align: 16}
	w.Section(text)
	if len(c.Descriptor) == 0 {
		w.symbols(names, uint64(size))
	} else {
		label := fmt.Sprintf(".Lsdt_code%d", kind)
		w.Label(label)
		w.code = append(w.code, namedText{label, uint64(size), names})
	}
	w.insns(code, "")
}

// descriptors writes those of functions, whose names are theirs.
func (w *definitionWriter) descriptors(c *arch.Conventions) {
	if len(w.code) == 0 {
		return
	}
	w.Section(Section{Name: c.Descriptors, Type: elf.SHT_PROGBITS, Flags: probeFlags, Align: uint64(w.word)})
	for _, f := range w.code {
		w.symbols(f.names, f.size)
		w.insns(c.Descriptor, f.label)
	}
}

func (w *definitionWriter) symbols(names []string, size uint64) {
	for _, name := range names {
		w.Symbol(Symbol{Name: name, Bind: elf.STB_WEAK, Type: elf.STT_FUNC, Hidden: true, Size: size})
	}
}

// insns writes instructions, or a descriptor of what is at a label.
func (w *definitionWriter) insns(insns []arch.Insn, label string) {
	for _, i := range insns {
		if i.ToCode {
			i.Symbol = label
		}
		w.Insn(i)
	}
}

// IsGenerated reports whether an object was made by this package, or by an assembler
// from its source: nothing is lost when it is written again.
func IsGenerated(o *elfreloc.Object) (bool, error) {
	files, err := SourceFiles(o)
	if err != nil || len(files) != 1 || files[0] != stubsSource {
		return false, err
	}
	descriptors := machines.Conventions(o.ABI()).Descriptors
	for i := range o.Sections {
		s := &o.Sections[i]
		ours := ownSection(s.Name) || s.Name != "" && s.Name == descriptors
		if s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 && !ours {
			return false, nil
		}
	}
	return true, nil
}

func ownSection(name string) bool {
	sections := []string{"set_sdt_probes_set", "set_sdt_providers_set", ".note.gnu.property"}
	return slices.Contains(sections, name) || slices.Contains(functionSections[:], name) || len(name) > len(".data.") && name[:len(".data.")] == ".data."
}
