package locate

import (
	"debug/elf"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"sdtconvert/image"
	"sdtconvert/internal/input"
)

// Target is what addresses are looked up in: an object or a linked image, at the addresses it was linked
// for, or a running process. The names of a module are read when one of its addresses is looked up.
type Target struct {
	image.Image // of the file, or the process

	in      *input.File // nil for a process
	file    *Code       // the same
	codes   map[*image.Module]*Code
	modules *Modules
	o       Options
}

// Address is where an address is. docs/output.md describes its JSON. What is not
// known is "".
type Address struct {
	Address    string `json:"address"` // as it was given
	Object     string `json:"object,omitempty"`
	FileOffset string `json:"file_offset,omitempty"`
	Base       string `json:"base,omitempty"` // what the loader has added to the addresses of the file
	Place
}

// Find returns where an address is: a hexadecimal number or, in an object, a section
// and an offset in it. There is an Address beside an error, too.
func Find(s *Target, text string) (*Address, error) {
	r := &Address{Address: text}
	a, err := s.parse(text)
	if err != nil {
		return r, err
	}
	c, err := s.codeAt(a)
	if err != nil {
		return r, err
	}
	r.Object, r.Base = c.Path, hexadecimal(c.Base)
	if off, ok := s.FileOffset(a); ok {
		r.FileOffset = hexadecimal(off)
	}
	r.Place = c.At(a)
	return r, nil
}

func hexadecimal(n uint64) string { return "0x" + strconv.FormatUint(n, 16) }

// parseAddress reads a hexadecimal number, with 0x or without.
func parseAddress(text string) (image.Addr, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return image.Addr{}, fmt.Errorf("%q is not an address", text)
	}
	return image.Addr{Offset: n}, nil
}

// OpenFile opens the file of an object or a linked image. Close it.
func OpenFile(path string, o Options) (*Target, error) {
	in, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	err = in.Unpack()
	var c *Code
	if err == nil {
		c, err = Open(in.Source(), o)
	}
	if err != nil {
		in.Close()
		return nil, err
	}
	s := &Target{Image: c.Image, in: in, file: c}
	if err := c.Read(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// OpenProcess opens a running process, by its number. Close it.
func OpenProcess(pid int, o Options) (*Target, error) {
	p, err := image.OpenProcess(pid)
	if err != nil {
		return nil, err
	}
	return &Target{Image: p, o: o, codes: map[*image.Module]*Code{}, modules: NewModules(o)}, nil
}

// Close closes the files of the space.
func (s *Target) Close() error {
	if s.file != nil {
		return errors.Join(s.file.Close(), s.in.Close())
	}
	return errors.Join(s.modules.Close(), s.Image.(*image.Process).Close())
}

// parse reads an address, which in an object is a section and an offset.
func (s *Target) parse(text string) (image.Addr, error) {
	if s.file == nil || s.file.Object.Type != elf.ET_REL {
		return parseAddress(text)
	}
	at := strings.LastIndexByte(text, '+')
	if at < 0 {
		return image.Addr{}, fmt.Errorf("invalid address %q: in an object, want a section and an offset, .text+0x10", text)
	}
	a, err := parseAddress(text[at+1:])
	if err != nil {
		return a, err
	}
	for i, section := range s.file.Object.Sections {
		if section.Name == text[:at] && i > 0 {
			return image.Addr{Section: i, Offset: a.Offset}, nil
		}
	}
	return a, fmt.Errorf("%s: has no section %q", s.file.Path, text[:at])
}

// codeAt returns the code that an address is of, read. The address need not be in it
// if an error says why.
func (s *Target) codeAt(a image.Addr) (*Code, error) {
	p, isProcess := s.Image.(*image.Process)
	if !isProcess {
		if !s.Executable(a) {
			return s.file, fmt.Errorf("%s: %s: is not in code", s.file.Path, s.Place(a))
		}
		return s.file, nil
	}
	m := p.Module(a.Offset)
	if m == nil {
		return nil, fmt.Errorf("%s: %#x: is in no file that is loaded", s.Name(), a.Offset)
	}
	if c, ok := s.codes[m]; ok {
		return c, nil
	}
	if m.Note != "" {
		s.o.Warn(fmt.Errorf("%s: %s: %s", s.Name(), m.Path, m.Note))
	}
	if m.Image == nil {
		return nil, fmt.Errorf("%s: %#x: is in %s, which cannot be read", s.Name(), a.Offset, m.Path)
	}
	c := s.modules.CodeOf(m)
	if err := c.Read(); err != nil {
		return nil, err
	}
	s.codes[m] = c
	return c, nil
}
