//go:build linux

package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"regexp"
)

// site is what a note says of one site.
type site struct {
	probe     string // PROVIDER:NAME
	file      string
	address   uint64 // as the file has it
	offset    uint64 // in the file
	semaphore uint64 // its offset in the file, 0 of a probe without one
	operands  []string
}

// operand matches an operand of a note, which may have blanks in brackets.
var operand = regexp.MustCompile(`-?\d+@(?:\[[^\]]*\]|\S+)`)

// readNotes reads the notes of a file.
func readNotes(path string) ([]site, elf.Machine, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	sites, err := notesOf(f)
	for i := range sites {
		sites[i].file = path
	}
	return sites, f.Machine, err
}

func notesOf(f *elf.File) ([]site, error) {
	section := f.Section(".note.stapsdt")
	if section == nil {
		return nil, fmt.Errorf("no .note.stapsdt")
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	word := 8
	if f.Class == elf.ELFCLASS32 {
		word = 4
	}
	number := func(b []byte) uint64 {
		if word == 4 {
			return uint64(f.ByteOrder.Uint32(b))
		}
		return f.ByteOrder.Uint64(b)
	}
	var sites []site
	for len(data) >= 12 {
		name, desc := int(f.ByteOrder.Uint32(data)), int(f.ByteOrder.Uint32(data[4:]))
		from := 12 + (name+3)&^3
		body := data[from : from+desc]
		data = data[from+(desc+3)&^3:]
		strs := bytes.Split(body[3*word:], []byte{0})
		s := site{
			probe:    string(strs[0]) + ":" + string(strs[1]),
			address:  number(body),
			operands: operand.FindAllString(string(strs[2]), -1),
		}
		var err error
		if s.offset, err = fileOffset(f, s.address); err != nil {
			return nil, err
		}
		if at := number(body[2*word:]); at != 0 {
			if s.semaphore, err = fileOffset(f, at); err != nil {
				return nil, err
			}
		}
		sites = append(sites, s)
	}
	return sites, nil
}

func fileOffset(f *elf.File, address uint64) (uint64, error) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address < p.Vaddr+p.Filesz {
			return address - p.Vaddr + p.Off, nil
		}
	}
	return 0, fmt.Errorf("%#x is not in the file", address)
}
