package linkerset

// A record refers to a probe object. What probe that is, the object itself tells if it
// is a struct sdt_probe, or else its name.

import (
	"slices"
	"strings"

	"sdtconvert/image"
	"sdtconvert/internal/itanium"
)

// Probe is what is known of a probe object. A field that nothing tells is "". Names
// have dashes where their C identifiers have __.
type Probe struct {
	ID         string // what the stub's name has behind its prefix; "" where no symbol names the object
	Provider   string
	Module     string
	Function   string
	Name       string
	Args       []Argument // sorted by index
	FromStruct bool       // by a struct sdt_probe, and not by the id alone
}

// Argument is the type of an argument of a probe (SDT(9), sdt_argtypes_set).
type Argument struct {
	Index      int    // from 0
	Native     string // as C writes it
	Translated string // "" when the type is not translated
}

// Probes reads probe objects of an image, each once. It serves one goroutine at a
// time, as the image does.
type Probes struct {
	im     image.Image
	prefix string // of the names of probe objects
	probes map[image.Ref]Probe
	args   map[image.Addr][]Argument // by probe object, once they were read
	left   int                       // bytes of strings that may still be read
}

// maxStrings bounds all strings of an image, in bytes: in a hostile one each of
// many pointers may lead into the same long string.
const maxStrings = 16 << 20

// NewProbes reads from an image whose probe objects have names that begin with
// prefix, mostly "sdt_". It must not be "".
func NewProbes(im image.Image, prefix string) *Probes {
	return &Probes{im: im, prefix: prefix, probes: map[image.Ref]Probe{}, left: maxStrings}
}

// Lookup returns the probe whose object a record refers to. Its identity is in the
// object where that is a struct sdt_probe, else in the name of its symbol. If
// neither has any, that is not an error. Args are shared between all calls, and
// not to be modified.
func (p *Probes) Lookup(ref image.Ref) (Probe, error) {
	if probe, ok := p.probes[ref]; ok {
		return probe, nil
	}
	name, err := p.Symbol(ref)
	if err != nil {
		return Probe{}, err
	}
	probe := ProbeFromID(probeID(name, p.prefix))
	if !ref.Undefined {
		if err := p.readStruct(ref.Addr, &probe); err != nil {
			return Probe{}, err
		}
	}
	p.probes[ref] = probe
	return probe, nil
}

// Symbol names the probe object that a record refers to, as the first of its
// symbols does that is the name of one. It is "" for an object without symbols.
func (p *Probes) Symbol(ref image.Ref) (string, error) {
	if ref.Symbol != "" {
		return ref.Symbol, nil
	}
	names, err := p.im.SymbolsAt(ref.Addr)
	if err != nil || len(names) == 0 {
		return "", err
	}
	i := slices.IndexFunc(names, func(name string) bool {
		// Linkers make the others where a section begins or ends, and an object may stand right behind records.
		return strings.Contains(name, p.prefix) && !strings.HasPrefix(name, "__start_") && !strings.HasPrefix(name, "__stop_")
	})
	return names[max(i, 0)], nil
}

// probeID cuts what compilers add to the name of a probe object that is local to
// a function or a namespace: gcc makes it <prefix><id>.<N>, clang
// <function>.<prefix><id>[.<N>], and both in C++ _ZZ<function>E<length><prefix><id>[_<N>]
// and _ZN<namespaces>[L]<length><prefix><id>E.
func probeID(symbol, prefix string) string {
	at := strings.Index(symbol, prefix)
	if at < 0 {
		return ""
	}
	id := symbol[at+len(prefix):]
	if at > 0 && strings.HasPrefix(symbol, itanium.Prefix) {
		for _, name := range itanium.Identifiers(symbol, at) {
			if len(name) > len(prefix) {
				return name[len(prefix):]
			}
		}
		return id
	}
	id, _, _ = strings.Cut(id, ".")
	return id
}

// ProbeFromID makes a probe of its id, without names if that is "".
func ProbeFromID(id string) Probe {
	if id == "" {
		return Probe{}
	}
	provider, name := SplitID(id)
	return Probe{ID: id, Provider: DisplayName(provider), Name: DisplayName(name)}
}

// SplitID takes an id apart, <provider>___<name>, or else a name alone of the
// provider sdt. In both __ stands for a dash, as in the structures of sdt.h.
func SplitID(id string) (provider, name string) {
	provider, name, ok := strings.Cut(id, "___")
	if !ok || provider == "" || name == "" {
		return "sdt", id
	}
	return provider, name
}

// DisplayName returns a name as a Probe has it, and people read it: with a dash for each
// __ of C identifiers and of notes.
func DisplayName(name string) string { return strings.ReplaceAll(name, "__", "-") }

// EncodeName returns a name with the __ that stands for a dash in sources, and so in notes:
// perf takes no dash in a note, and SystemTap, which replaces those that it is asked for,
// does not find one.
func EncodeName(name string) string { return strings.ReplaceAll(name, "-", "__") }
