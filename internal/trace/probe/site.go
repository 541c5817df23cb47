// Package probe finds the sites of the probes that a tracer wants, in the files that a process has loaded: their code, names and
// arguments.
package probe

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/message"
	"sdtconvert/internal/sites"
)

// Site is a place that reaches a probe: of a file, at the addresses that the file was linked for, or of a process. All
// processes that have loaded the file have copies, with one number.
type Site struct {
	listing.Probe // what it is called
	Number        uint32
	Arguments     []Argument
	Text          string // provider:module:function:name, escaped for output

	File       *Site  // the file's site, of which this is the copy
	Place      string // for messages
	Module     string // of a process: identifies its module
	Address    uint64
	Kind       arch.Kind
	Form       arch.Site
	Original   []byte // what the file has there, as far as a site reaches, and what follows
	Rest       uint64 // bytes of its function from Address on, 0 if that is not known
	Semaphore  uint64 // address, 0 for none
	Layout     Layout
	Refused    string // why the site is left alone; "" for none
	Breakpoint bool   // of a file: a process has a breakpoint there
}

// At returns a copy of a file's site, for a process that has loaded the file at a base.
func (s *Site) At(base uint64, module string) *Site {
	c := *s
	c.File, c.Module, c.Address = s, module, s.Address+base
	if c.Semaphore != 0 {
		c.Semaphore += base
	}
	c.Arguments, c.Layout.Arguments = slices.Clone(s.Arguments), slices.Clone(s.Layout.Arguments)
	for i := range c.Arguments {
		if c.Arguments[i].Address {
			c.Arguments[i].Value += base
			c.Layout.Arguments[i].Value += base
		}
	}
	return &c
}

// Argument is an argument of a site.
type Argument struct {
	arch.Operand
	Name   string // as a provider file has it, escaped for output, "" if nothing tells
	Type   string // "" if nothing tells
	Format Format
	Length int // of a text without a NUL: the index of the argument that has its length, 0 for none

	Enumerators map[int64]string // escaped for output, nil if it is no enumeration
}

// Format says how an argument is shown.
type Format uint8

const (
	Number  Format = iota
	Pointer        // in hexadecimal
	Text           // what a char * points to
	Boolean
	Unreadable // nothing tells where the argument is
)

// formatOf says how an argument of a C type is shown. Of an unknown type, unsigned words are likely to be pointers.
func formatOf(typ string, o *arch.Operand, word int) Format {
	words := strings.Fields(strings.NewReplacer("*", " * ", "[", " [ ").Replace(typ))
	stars := strings.Count(typ, "*") + strings.Count(typ, "[")
	switch {
	case o.Size == 0:
		return Unreadable
	case typ == "string", stars == 1 && slices.Contains(words, "char"):
		return Text
	case stars > 0, slices.Contains(words, "uintptr_t"), typ == "" && o.Size == word && !o.Signed && (o.Kind != arch.Constant || o.Address):
		return Pointer
	case slices.ContainsFunc(words, func(w string) bool { return w == "bool" || w == "_Bool" || w == "boolean_t" }):
		return Boolean
	}
	return Number
}

// originalBytes is how much of the code behind the address of a site a tracer looks at.
const originalBytes = 16

// Finder finds the sites of files that are wanted.
type Finder struct {
	listing.Options
	Declarations
	Census   *Census // of all probes, also of those that are not wanted
	CodeOnly bool    // no arguments, for which debug information may have to be read
	Sites    []*Site
}

// Find adds the sites of one module to Sites.
func (f *Finder) Find(m *image.Module) error {
	f.Census.addUnconverted(m)
	space := sites.New(m.Object, m.Image, m.Image, 0, f.Options.Options)
	if err := space.Read(); err != nil || len(space.Sites) == 0 {
		return err
	}
	code := locate.NewModuleCode(m, f.Places)
	defer code.Close()
	code.Base = 0
	if err := code.Read(); err != nil {
		return err
	}
	reader := &arch.OperandReader{
		Threads: &m.Image.Machine().Traits().Threads, Numeric: m.Image.Machine().Traits().Arguments.NumericRegisters,
		Address: symbols(m.Object), Word: m.Image.Encoding().Word(),
	}
	var found []*foundSite
	for i := range space.Sites {
		s, err := f.site(m, space, code, &space.Sites[i])
		if err != nil {
			return err
		}
		if s != nil {
			found = append(found, s)
			f.Sites = append(f.Sites, s.Site)
		}
	}
	if f.CodeOnly {
		return nil
	}
	f.describe(m, code, slices.DeleteFunc(found, func(s *foundSite) bool { return s.Kind != arch.Probe }), reader)
	return nil
}

// site makes a site, without its arguments. It returns nil if the site is not wanted.
func (f *Finder) site(m *image.Module, space *sites.Space, code *locate.Code, from *sites.Site) (*foundSite, error) {
	probe, err := space.Probe(from)
	if err != nil {
		return nil, err
	}
	s := &Site{Kind: from.Kind, Address: from.Address.Offset}
	var place locate.Place
	s.Probe, place = listing.Identify(code, from, &probe)
	f.Census.add(&s.Probe)
	if !f.Filter.Match(&s.Probe) {
		return nil, nil
	}
	s.Rest = place.Rest()
	s.Text, s.Place = message.Escape(s.Probe.String()), message.Escape(place.String())
	found, err := space.Code(from)
	if err != nil {
		return nil, err
	}
	s.Form = found.Form
	semaphore, hasSemaphore, err := space.Semaphore(from)
	switch {
	case err != nil:
		return nil, err
	case hasSemaphore && !semaphore.Undefined:
		s.Semaphore = semaphore.Offset
	}
	if found.State != sites.Disabled {
		s.Refused = "the file has no disabled form there"
	}
	for n := uint64(originalBytes); n > 0 && s.Original == nil; n-- { // less at the end of the code
		if s.Original, err = m.Image.Bytes(from.Address, n); err != nil {
			s.Original = nil
		}
	}
	s.Original = slices.Clone(s.Original)
	return &foundSite{Site: s, from: from, probe: probe}, nil
}

// symbols returns what finds the address of a symbol of a file.
func symbols(o *elfreloc.Object) func(name string) (uint64, bool) {
	return func(name string) (uint64, bool) {
		table, err := o.Symbols()
		if err != nil {
			return 0, false
		}
		var found []uint64 // of static variables several may have a name
		for _, s := range table.Named(name) {
			if s.Section > 0 && !slices.Contains(found, s.Value) {
				found = append(found, s.Value)
			}
		}
		if len(found) != 1 {
			return 0, false
		}
		return found[0], true
	}
}

// MaxArguments is how many arguments of a site are shown.
const MaxArguments = 12

// orderData returns the byte order as notes need it.
func orderData(order binary.ByteOrder) elf.Data {
	if order == binary.ByteOrder(binary.BigEndian) {
		return elf.ELFDATA2MSB
	}
	return elf.ELFDATA2LSB
}
