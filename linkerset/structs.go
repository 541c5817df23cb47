package linkerset

import (
	"bytes"
	"cmp"
	"slices"
	"strings"

	"sdtconvert/image"
)

// The structures of FreeBSD's sys/sdt.h (13.x), and of include/sdt.h: sizes and
// offsets of fields, in words.
const (
	sdtProbeSize  = 12 // struct sdt_probe; its field version has this in bytes
	probeProvider = 1
	probeModule   = 6
	probeFunction = 7
	probeName     = 8
	// Since FreeBSD 15 the head of a list of tracepoints is before probeModule.
	tracepointList = 2
	providerName   = 0 // of struct sdt_provider
	argIndex       = 0 // of struct sdt_argtype
	argType        = 1
	argTranslated  = 2
	argProbe       = 5
)

// Linker sets.
const (
	argTypesSection = "set_sdt_argtypes_set"
	probesSection   = "set_sdt_probes_set"
)

// word returns the size of a word in bytes.
func (p *Probes) word() uint64 { return uint64(p.im.Encoding().Word()) }

// field returns the place of a field of a structure, a number of words behind its start.
func (p *Probes) field(at image.Addr, words uint64) image.Addr { return at.Add(words * p.word()) }

// maxString bounds the strings that are read, in bytes.
const maxString = 4096

// providerPrefix begins the names of provider objects. The provider's name follows (SDT_PROVIDER_DEFINE).
const providerPrefix = "sdt_provider_"

// readStruct fills in what a struct sdt_probe says. An object that is none, or that
// has no contents, says nothing. Of a provider that another file defines the name of
// its symbol tells enough.
func (p *Probes) readStruct(at image.Addr, probe *Probe) error {
	provider, shift, ok := p.provider(at)
	name, hasName := strings.CutPrefix(provider.Symbol, providerPrefix)
	if !ok || provider.Undefined && (!hasName || name == "") {
		return nil
	}
	type text struct {
		at image.Addr
		to *string
	}
	before := *probe
	fields := []text{
		{p.field(at, probeModule+shift), &probe.Module},
		{p.field(at, probeFunction+shift), &probe.Function},
		{p.field(at, probeName+shift), &probe.Name},
	}
	if provider.Undefined {
		probe.Provider = name
	} else {
		fields = append(fields, text{p.field(provider.Addr, providerName), &probe.Provider})
	}
	for _, f := range fields {
		if s, ok := p.pointedString(f.at); ok && (s != "" || f.to == &probe.Module || f.to == &probe.Function) {
			*f.to = s
		}
	}
	if shift > 0 && probe.ID != "" && probe.ID != strings.Join([]string{probe.Provider, probe.Module, probe.Function, probe.Name}, "_") {
		*probe = before // a structure of another shape
		return nil
	}
	probe.Provider, probe.Name, probe.FromStruct = DisplayName(probe.Provider), DisplayName(probe.Name), true
	if p.args == nil {
		if err := p.readArguments(); err != nil {
			return err
		}
	}
	probe.Args = p.args[at]
	return nil
}

// provider returns what the provider's field of a struct sdt_probe refers to, and how many words the fields from
// probeModule on are further behind; ok is false for an object that is none, has no contents, or only looks like one.
func (p *Probes) provider(at image.Addr) (provider image.Ref, shift uint64, ok bool) {
	b, err := p.im.Bytes(at, 4)
	if err != nil {
		return image.Ref{}, 0, false
	}
	switch uint64(p.im.Encoding().Order.Uint32(b)) {
	case sdtProbeSize * p.word():
	case (sdtProbeSize + tracepointList) * p.word():
		shift = tracepointList
	default:
		return image.Ref{}, 0, false
	}
	provider, err = p.im.Word(p.field(at, probeProvider))
	return provider, shift, err == nil && !provider.Null()
}

// IsObject reports whether a struct sdt_probe stands at an address.
func (p *Probes) IsObject(at image.Addr) bool {
	_, _, ok := p.provider(at)
	return ok
}

// DefinedBySites reports whether a struct sdt_probe of a linked image is one that is defined
// for the sites of its probe, and not by a source: by `sdtconvert stubs`, by a link through
// `sdtconvert ld`, or by the macros of DTRACE_PROBE. Those have the strings beside the
// structure, and share one empty string for module and function.
func (p *Probes) DefinedBySites(at image.Addr) bool {
	var text [3]image.Addr
	for i, field := range []uint64{probeName, probeModule, probeFunction} {
		pointer, err := p.im.Word(p.field(at, field))
		if err != nil || pointer.Null() || pointer.Undefined {
			return false
		}
		text[i] = pointer.Addr
	}
	name, module, function := text[0], text[1], text[2]
	if module != function || name.Section != at.Section || module.Section != at.Section {
		return false
	}
	if name == p.field(at, sdtProbeSize) { // as stubs writes it, with the NUL of the name as ""
		s, ok := p.cString(name)
		return ok && module == name.Add(uint64(len(s)))
	}
	return name.Offset < module.Offset && module.Offset < at.Offset && at.Offset-module.Offset <= p.word()
}

// Set returns the probe objects that the image's linker set of probes has.
func (p *Probes) Set() ([]image.Addr, error) {
	var objects []image.Addr
	err := p.eachOf(probesSection, func(at image.Addr) { objects = append(objects, at) })
	return objects, err
}

// readArguments reads the linker set of argument types: pointers to struct
// sdt_argtype. What it holds besides is passed over.
func (p *Probes) readArguments() error {
	p.args = map[image.Addr][]Argument{}
	if err := p.eachOf(argTypesSection, p.addArgument); err != nil {
		return err
	}
	for _, args := range p.args {
		slices.SortStableFunc(args, func(a, b Argument) int { return cmp.Compare(a.Index, b.Index) })
	}
	return nil
}

// eachOf calls f with what each pointer of a linker set points to in this image.
func (p *Probes) eachOf(section string, f func(at image.Addr)) error {
	arrays, err := p.im.Arrays(section)
	if err != nil {
		return err
	}
	word := p.word()
	for _, a := range arrays {
		for off := uint64(0); off+word <= a.Size; off += word {
			pointer, err := p.im.Word(a.Start.Add(off))
			if err != nil {
				return err
			}
			if !pointer.Null() && !pointer.Undefined {
				f(pointer.Addr)
			}
		}
	}
	return nil
}

func (p *Probes) addArgument(at image.Addr) {
	index, err := p.im.Bytes(p.field(at, argIndex), 4)
	if err != nil {
		return
	}
	probe, err := p.im.Word(p.field(at, argProbe))
	if err != nil || probe.Null() || probe.Undefined {
		return
	}
	arg := Argument{Index: int(int32(p.im.Encoding().Order.Uint32(index)))}
	arg.Native, _ = p.pointedString(p.field(at, argType))
	arg.Translated, _ = p.pointedString(p.field(at, argTranslated))
	p.args[probe.Addr] = append(p.args[probe.Addr], arg)
}

// pointedString reads the string that a pointer in memory points to.
func (p *Probes) pointedString(at image.Addr) (string, bool) {
	pointer, err := p.im.Word(at)
	if err != nil || pointer.Null() || pointer.Undefined {
		return "", false
	}
	return p.cString(pointer.Addr)
}

// cString reads a string up to its NUL, in steps: it may be the last thing in
// its section.
func (p *Probes) cString(at image.Addr) (string, bool) {
	var s []byte
	for step := uint64(64); len(s) < maxString && p.left > 0; {
		b, err := p.im.Bytes(at.Add(uint64(len(s))), step)
		if err != nil {
			if step /= 2; step == 0 {
				return "", false
			}
			continue
		}
		if n := bytes.IndexByte(b, 0); n >= 0 {
			p.left -= len(s) + n
			return string(append(s, b[:n]...)), true
		}
		s = append(s, b...)
	}
	return "", false
}
