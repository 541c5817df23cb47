package input

import (
	"debug/elf"
	"errors"
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/patch"
)

// Link opens the files of one link: objects, archives, and perhaps shared libraries.
type Link struct {
	Options
	Names  patch.Names // of stubs: what mentions none need be no object, see Source.Relocatable
	Shared bool        // takes shared libraries, for what they define

	first *elfreloc.Object // closed; all others are of its machine
}

// Each calls work with the objects of a file, one after the other, and report with
// every error, of work too.
func (l *Link) Each(path string, work func(o *Object) error, report func(error)) {
	err := Each(path, l.Options, func(src *Source) error {
		if err := l.source(src, work); err != nil {
			report(err)
		}
		return nil
	})
	if err != nil {
		report(err)
	}
}

func (l *Link) source(src *Source, work func(o *Object) error) error {
	o, err := l.open(src)
	if errors.Is(err, ErrSkipped) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := l.sameMachine(o.Object); err != nil {
		return err
	}
	return work(o)
}

func (l *Link) open(src *Source) (*Object, error) {
	o, err := src.ELF(l.Names)
	if err != nil || l.Shared && src.Member == nil && o.Type == elf.ET_DYN {
		return o, err
	}
	return o.relocatable(l.Names)
}

// sameMachine refuses objects that cannot be linked with each other.
func (l *Link) sameMachine(o *elfreloc.Object) error {
	if l.first == nil {
		l.first = o
	}
	f := l.first
	if f.Machine == o.Machine && f.Encoding.Class == o.Encoding.Class && f.Encoding.Order == o.Encoding.Order {
		return nil
	}
	return fmt.Errorf("%s: is for %s, and %s for %s; give the objects of one link", o.Name, abi(o), f.Name, abi(f))
}

func abi(o *elfreloc.Object) string {
	return fmt.Sprintf("%v, %v, %v", o.Machine, o.Encoding.Class, o.Encoding.Order)
}
