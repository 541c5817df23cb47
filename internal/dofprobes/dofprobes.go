// Package dofprobes reads the probes that linked files tell kernels of in DTrace's object
// format (DOF), which package internal/emit/dof writes and describes.
//
// Objects have none to read: where functions are, only their linker knows.
package dofprobes

import (
	"debug/elf"
	"errors"
	"fmt"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/image"
	"sdtconvert/internal/emit/dof"
	"sdtconvert/linkerset"
)

// Probe is a probe in a function.
type Probe struct {
	Provider, Function, Name string // as DTrace shows them, with dashes
	Args                     []linkerset.Argument
	Sites                    []Site
}

// Site is what a kernel arms.
type Site struct {
	Addr image.Addr
	Kind arch.Kind
}

// Read returns the probes of a linked file, in its order, none of an object. Addresses are
// those that it is linked for. What cannot be read is in faults, each an *elfreloc.Error;
// err keeps a whole section from being read.
func Read(o *elfreloc.Object, im image.Image) (probes []Probe, faults []error, err error) {
	if o.Type == elf.ET_REL {
		return nil, nil, nil
	}
	left := uint64(o.Size())
	for i := range o.Sections {
		s := &o.Sections[i]
		if s.Name != dof.SectionName || s.Type == elf.SHT_NOBITS {
			continue
		}
		if s.Size > left {
			return nil, nil, o.SectionError(i, errors.New("overlaps others in the file"))
		}
		left -= s.Size
		data, err := o.Data(i)
		if err != nil {
			return nil, nil, err
		}
		some, at, err := readAll(im, s.Addr, data)
		if err != nil {
			faults = append(faults, o.OffsetError(i, at, err))
		}
		probes = append(probes, some...)
	}
	return probes, faults, nil
}

// readAll reads the files that a linker has put one behind the other. An error is about
// the one at an offset; what was read before it counts.
func readAll(im image.Image, addr uint64, data []byte) (probes []Probe, at uint64, err error) {
	size := uint64(len(data))
	for at < size {
		if data[at] == 0 { // between two of them
			at++
			continue
		}
		n, err := fileSize(im.Encoding(), data[at:])
		if err != nil {
			return probes, at, err
		}
		f := &file{im: im, addr: addr + at, data: data[at : at+n]}
		some, err := f.read()
		probes = append(probes, some...)
		if err != nil {
			return probes, at, err
		}
		at += n
	}
	return probes, 0, nil
}

// fileSize reads how long a file is, from its header.
func fileSize(enc elfreloc.Encoding, data []byte) (uint64, error) {
	const sizeAt = 48 // of dofh_filesz
	if len(data) < dof.HeaderSize || string(data[:4]) != "\x7fDOF" {
		return 0, errors.New("holds what is not DTrace's object format")
	}
	n := enc.Order.Uint64(data[sizeAt:])
	if n < dof.HeaderSize || n > uint64(len(data)) {
		return 0, fmt.Errorf("has %d bytes by its header, and there are %d", n, len(data))
	}
	return n, nil
}
