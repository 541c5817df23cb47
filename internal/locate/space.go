package locate

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sdtconvert/image"
	"sdtconvert/internal/input"
)

// Space is what addresses are looked up in.
type Space interface {
	io.Closer

	parse(text string) (image.Addr, error)
	// codeAt is the code that an address is of, read. The address need not be in it
	// where an error says why.
	codeAt(a image.Addr) (*Code, error)
	fileOffset(a image.Addr) (uint64, bool)
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
func Find(s Space, text string) (*Address, error) {
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
	if off, ok := s.fileOffset(a); ok {
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

// fileSpace is an object or a linked image, at the addresses it was linked for.
type fileSpace struct {
	*Code
	in *input.File
}

// OpenFile opens the file of an object or a linked image. Close it.
func OpenFile(path string, o Options) (Space, error) {
	in, err := input.Open(path)
	if err != nil {
		return nil, err
	}
	c, err := Open(in.Source(), o)
	if err != nil {
		in.Close()
		return nil, err
	}
	s := &fileSpace{c, in}
	if err := c.Read(); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *fileSpace) Close() error { return errors.Join(s.Code.Close(), s.in.Close()) }

// parse reads an address, which in an object is a section and an offset.
func (s *fileSpace) parse(text string) (image.Addr, error) {
	if s.Object.Type != elf.ET_REL {
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
	for i := range s.Object.Sections {
		if s.Object.Sections[i].Name == text[:at] && i > 0 {
			return image.Addr{Section: i, Offset: a.Offset}, nil
		}
	}
	return a, fmt.Errorf("%s: has no section %q", s.Path, text[:at])
}

func (s *fileSpace) codeAt(a image.Addr) (*Code, error) {
	if !s.Image.Executable(a) {
		return s.Code, fmt.Errorf("%s: %s: is not in code", s.Path, s.Image.Place(a))
	}
	return s.Code, nil
}

func (s *fileSpace) fileOffset(a image.Addr) (uint64, bool) { return s.Image.FileOffset(a) }

// processSpace is a running process. The names of a module are read when one of its
// addresses is looked up.
type processSpace struct {
	*image.Process
	o     Options
	codes map[*image.Module]*Code
}

// OpenProcess opens a running process, by its number. Close it.
func OpenProcess(pid int, o Options) (Space, error) {
	p, err := image.OpenProcess(pid)
	if err != nil {
		return nil, err
	}
	return &processSpace{p, o, map[*image.Module]*Code{}}, nil
}

func (s *processSpace) parse(text string) (image.Addr, error) { return parseAddress(text) }

func (s *processSpace) codeAt(a image.Addr) (*Code, error) {
	m := s.Module(a.Offset)
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
	c := NewModuleCode(m, s.o)
	if err := c.Read(); err != nil {
		c.Close()
		return nil, err
	}
	s.codes[m] = c
	return c, nil
}

func (s *processSpace) fileOffset(a image.Addr) (uint64, bool) { return s.FileOffset(a) }

func (s *processSpace) Close() error {
	for _, m := range s.Modules {
		if c := s.codes[m]; c != nil {
			c.Close()
		}
	}
	return s.Process.Close()
}
