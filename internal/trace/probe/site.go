// Package probe finds the sites of the probes that a tracer wants, in the files that a process has loaded: their code, names and
// arguments.
package probe

import (
	"debug/elf"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/ianlancetaylor/demangle"

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
	listing.Probe        // what it is called; the function as sources have it
	Symbol        string // of the function, as the file has it
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

// Match reports whether a pattern matches the probe. Its function may be as sources or as the file have it.
func (s *Site) Match(p *listing.Pattern) bool {
	return p.Match(s.Provider, s.Probe.Module, s.Function, s.Name) || p.Match(s.Provider, s.Probe.Module, s.Symbol, s.Name)
}

// Demangle returns the name of a function or a type as sources of C++ and Rust have it, without parameters. Other names stay.
func Demangle(name string) string {
	const most = 16 // bits of the length: names of templates may be without end
	return demangle.Filter(name, demangle.NoParams, demangle.NoClones, demangle.MaxLength(most))
}

// Argument is an argument of a site.
type Argument struct {
	arch.Operand
	Name   string // as a provider file has it, escaped for output, "" if nothing tells
	Type   string // "" if nothing tells
	Format Format
	Length int // of a text without a NUL: 1 more than the index of the argument that has its length, 0 for none

	Enumerators map[int64]string // escaped for output, nil if it is no enumeration
}

// Format says how an argument is shown.
type Format uint8

const (
	Number  Format = iota
	Pointer        // in hexadecimal
	Text           // what a char * points to
	Boolean
	Float
	TypeName   // what a std::type_info * describes
	Unreadable // nothing tells where the argument is
)

// formatOf says how an argument of a C type is shown. Of an unknown type, unsigned words are likely to be pointers.
func formatOf(typ string, o *arch.Operand, word int) Format {
	words := strings.Fields(strings.NewReplacer("*", " * ", "[", " [ ").Replace(typ))
	stars := strings.Count(typ, "*") + strings.Count(typ, "[")
	switch {
	case o.Size == 0:
		return Unreadable
	case o.Float, stars == 0 && o.Size >= 4 && (slices.Contains(words, "float") || slices.Contains(words, "double")):
		return Float
	case stars == 1 && slices.ContainsFunc(words, func(w string) bool { return w == "type_info" || w == "std::type_info" }) && o.Size == word:
		return TypeName
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
	Mangled  bool    // functions of C++ and Rust have the names of their symbols
	Sites    []*Site
}

// Find adds the sites of one module to Sites.
func (f *Finder) Find(m *image.Module) error {
	f.Census.addUnconverted(m)
	space := sites.New(m.Object, m.Image, m.Image, 0, f.Options.Conventions)
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
		Address: symbols(m.Object, false), Local: locals(m), Word: m.Image.Encoding().Word(),
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
	isWanted := f.Filter.Match(&s.Probe)
	f.Census.add(&s.Probe)
	if s.Symbol = s.Function; !f.Mangled {
		s.Function = Demangle(s.Function)
		f.Census.add(&s.Probe)
	}
	if !isWanted && !f.Filter.Match(&s.Probe) {
		return nil, nil
	}
	s.Rest = place.Rest()
	s.Text, s.Place = message.Escape(s.Probe.String()), message.Escape(place.String())
	found, err := space.Content(from)
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

// symbols returns what finds the value of a symbol of a file, which is thread-local or is not: its address, or where it is in PT_TLS.
func symbols(o *elfreloc.Object, isLocal bool) func(name string) (uint64, bool) {
	return func(name string) (uint64, bool) {
		table, err := o.Symbols()
		if err != nil {
			return 0, false
		}
		var found []uint64 // of static variables several may have a name
		for _, s := range table.Named(name) {
			if s.Section > 0 && (s.Type == elf.STT_TLS) == isLocal && !slices.Contains(found, s.Value) {
				found = append(found, s.Value)
			}
		}
		if len(found) != 1 {
			return 0, false
		}
		return found[0], true
	}
}

// locals returns what finds how far behind the thread pointer a thread-local variable of a program is. In x86 the variables end at the thread pointer
// (Drepper, ELF Handling For Thread-Local Storage, variant II). A library's are anywhere.
func locals(m *image.Module) func(name string) (uint64, bool) {
	find := symbols(m.Object, true)
	return func(name string) (uint64, bool) {
		segments, err := m.Object.Segments()
		i := slices.IndexFunc(segments, func(s elfreloc.Segment) bool { return s.Type == elf.PT_TLS })
		if err != nil || i < 0 || m.Object.Type != elf.ET_EXEC && !isPIE(m, segments) {
			return 0, false
		}
		value, ok := find(name)
		tls := segments[i]
		end := tls.Vaddr + tls.Memsz
		if tls.Align > 1 {
			end = (end + tls.Align - 1) &^ (tls.Align - 1)
		}
		return value + tls.Vaddr - end, ok
	}
}

// isPIE reports whether a file says that it is a position-independent program (DF_1_PIE of DT_FLAGS_1).
func isPIE(m *image.Module, segments []elfreloc.Segment) bool {
	i := slices.IndexFunc(segments, func(s elfreloc.Segment) bool { return s.Type == elf.PT_DYNAMIC })
	if i < 0 {
		return false
	}
	e := m.Image.Encoding()
	data, err := m.Image.Bytes(image.Addr{Offset: segments[i].Vaddr}, segments[i].Filesz)
	for word := e.Word(); err == nil && len(data) >= 2*word; data = data[2*word:] {
		switch e.GetWord(data) {
		case uint64(elf.DT_NULL):
			return false
		case uint64(elf.DT_FLAGS_1):
			return e.GetWord(data[word:])&uint64(elf.DF_1_PIE) != 0
		}
	}
	return false
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
