package trace

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/locate"
	"sdtconvert/internal/sites"
)

// Site is a place that reaches a probe that is traced: of a file, at the addresses that it was linked for, or of a process. All
// processes that have loaded the file have copies, with one number.
type Site struct {
	listing.Probe // what it is called
	Number        uint32
	Arguments     []Argument
	Text          string // provider:module:function:name

	file      *Site  // of which this is the copy
	place     string // for messages
	module    string // of a process: mappingKey of its module
	address   uint64
	kind      arch.Kind
	form      arch.Site
	original  []byte // what the file has there, as far as a site reaches, and what follows
	semaphore uint64 // address, 0 for none
	layout    eventLayout
	refused   string // why the site is left alone; "" for none
	traps     bool   // of a file: a process has a breakpoint there
}

// at returns a copy of a file's site, for a process that has loaded the file at a base.
func (s *Site) at(base uint64, module string) *Site {
	c := *s
	c.file, c.module, c.address = s, module, s.address+base
	if c.semaphore != 0 {
		c.semaphore += base
	}
	c.Arguments, c.layout.arguments = slices.Clone(s.Arguments), slices.Clone(s.layout.arguments)
	for i := range c.Arguments {
		if c.Arguments[i].Address {
			c.Arguments[i].Value += base
			c.layout.arguments[i].Value += base
		}
	}
	return &c
}

// Argument is an argument of a site.
type Argument struct {
	arch.Operand
	Name   string // as a provider file has it, "" if nothing tells
	Type   string // "" if nothing tells
	Format Format

	enumerators map[int64]string // nil if it is no enumeration
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

// finder finds the sites of files that are wanted.
type finder struct {
	listing.Options
	Declarations
	codeOnly bool // no arguments, for which debug information may have to be read
	sites    []*Site
}

// find adds the sites of one module.
func (f *finder) find(m *image.Module) error {
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
	reader := &operandReader{
		threads: &m.Image.Machine().Traits().Threads, numeric: m.Image.Machine().Traits().Arguments.NumericRegisters,
		address: symbols(m.Object),
	}
	var found []*foundSite
	for i := range space.Sites {
		s, err := f.site(m, space, code, &space.Sites[i])
		if err != nil {
			return err
		}
		if s != nil {
			found = append(found, s)
			f.sites = append(f.sites, s.Site)
		}
	}
	if f.codeOnly {
		return nil
	}
	f.describe(m, code, slices.DeleteFunc(found, func(s *foundSite) bool { return s.kind != arch.Probe }), reader)
	return nil
}

// site makes a site, without its arguments. It returns nil if the site is not wanted.
func (f *finder) site(m *image.Module, space *sites.Space, code *locate.Code, from *sites.Site) (*foundSite, error) {
	probe, err := space.Probe(from)
	if err != nil {
		return nil, err
	}
	s := &Site{kind: from.Kind, address: from.Address.Offset}
	var place locate.Place
	s.Probe, place = listing.Identify(code, from, &probe)
	if !f.Filter.Match(&s.Probe) {
		return nil, nil
	}
	s.Text, s.place = s.Probe.String(), place.String()
	found, err := space.Code(from)
	if err != nil {
		return nil, err
	}
	s.form = found.Form
	semaphore, hasSemaphore, err := space.Semaphore(from)
	switch {
	case err != nil:
		return nil, err
	case hasSemaphore && !semaphore.Undefined:
		s.semaphore = semaphore.Offset
	}
	if found.State != sites.Disabled {
		s.refused = "the file has no disabled form there"
	}
	for n := uint64(originalBytes); n > 0 && s.original == nil; n-- { // less at the end of the code
		if s.original, err = m.Image.Bytes(from.Address, n); err != nil {
			s.original = nil
		}
	}
	s.original = slices.Clone(s.original)
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

// maxArguments is how many arguments of a site are shown.
const maxArguments = 12

// mappingKey identifies a module of a process, so that one which is loaded later is found, also from another file of that name.
func mappingKey(m *image.Module, version fileVersion) string {
	return fmt.Sprintf("%#x %s %d %d", m.Base, m.Path, version.device, version.inode)
}

// fileVersion identifies a file and what it holds. It is zero if that is not known.
type fileVersion struct {
	path          string
	device, inode uint64
	size          int64
	modified      int64 // nanoseconds
}

// orderData returns the byte order as notes need it.
func orderData(order binary.ByteOrder) elf.Data {
	if order == binary.ByteOrder(binary.BigEndian) {
		return elf.ELFDATA2MSB
	}
	return elf.ELFDATA2LSB
}
