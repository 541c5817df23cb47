package main

import (
	"debug/elf"
	"fmt"
	"io"
	"strconv"
	"strings"

	"sdtconvert/image"
)

// space is what addresses are looked up in.
type space interface {
	io.Closer
	parse(text string) (image.Addr, error)
	unitAt(a image.Addr) (*unit, error)
	fileOffset(a image.Addr) (uint64, bool)
}

// parseAddress reads a hexadecimal number, with 0x or without.
func parseAddress(text string) (image.Addr, error) {
	digits := strings.TrimPrefix(strings.TrimPrefix(text, "0x"), "0X")
	n, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return image.Addr{}, fmt.Errorf("%q is no address", text)
	}
	return image.Addr{Offset: n}, nil
}

// fileSpace is an object or a linked image, at the addresses it was linked for.
type fileSpace struct{ *unit }

// parse reads an address, which in an object is a section and an offset.
func (s *fileSpace) parse(text string) (image.Addr, error) {
	if s.object.Type != elf.ET_REL {
		return parseAddress(text)
	}
	at := strings.LastIndexByte(text, '+')
	if at < 0 {
		return image.Addr{}, fmt.Errorf("%q is no address in an object: that is a section and an offset, .text+0x10", text)
	}
	a, err := parseAddress(text[at+1:])
	if err != nil {
		return a, err
	}
	for i := range s.object.Sections {
		if s.object.Sections[i].Name == text[:at] && i > 0 {
			return image.Addr{Section: i, Offset: a.Offset}, nil
		}
	}
	return a, fmt.Errorf("%s: has no section %q", s.path, text[:at])
}

func (s *fileSpace) unitAt(a image.Addr) (*unit, error) {
	if !s.image.Executable(a) {
		return s.unit, fmt.Errorf("%s: %s: is not in code", s.path, s.image.Place(a))
	}
	return s.unit, nil
}

func (s *fileSpace) fileOffset(a image.Addr) (uint64, bool) { return s.image.FileOffset(a) }

// processSpace is a running process. Its files are looked at when one of their
// addresses is.
type processSpace struct {
	*image.Process
	lookup
	units map[*image.Module]*unit
	warn  func(error)
}

func openProcessSpace(pid int, look lookup, warn func(error)) (*processSpace, error) {
	p, err := image.OpenProcess(pid)
	if err != nil {
		return nil, err
	}
	return &processSpace{Process: p, lookup: look, units: map[*image.Module]*unit{}, warn: warn}, nil
}

func (s *processSpace) parse(text string) (image.Addr, error) { return parseAddress(text) }

func (s *processSpace) unitAt(a image.Addr) (*unit, error) {
	m := s.Module(a.Offset)
	if m == nil {
		return nil, fmt.Errorf("%s: %#x: is in no file that is loaded", s.Name(), a.Offset)
	}
	if u, ok := s.units[m]; ok {
		return u, nil
	}
	if m.Note != "" {
		s.warn(fmt.Errorf("%s: %s: %s", s.Name(), m.Path, m.Note))
	}
	if m.Image == nil {
		return nil, fmt.Errorf("%s: %#x: is in %s, which cannot be read", s.Name(), a.Offset, m.Path)
	}
	u := moduleUnit(m, s.lookup, s.warn)
	if err := u.readNames(); err != nil {
		u.Close()
		return nil, err
	}
	s.units[m] = u
	return u, nil
}

func (s *processSpace) fileOffset(a image.Addr) (uint64, bool) { return s.FileOffset(a) }

func (s *processSpace) Close() error {
	for _, u := range s.units {
		u.Close()
	}
	return s.Process.Close()
}
