package ld

import (
	"debug/elf"
	"errors"

	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/patch"
)

// checkPrefixes refuses objects whose records name probe objects with another prefix that nothing in
// the link defines. The link adds no definition of such names, so the linker would only call them
// undefined, or leave them to the loader. For an archive, of which the linker may take another
// member, it warns.
func (l *link) checkPrefixes(inputs []*linkInput) error {
	undefined := map[string]bool{}
	eachOtherPrefix(inputs, func(_ *linkInput, symbol string, _ error) { undefined[symbol] = true })
	for _, in := range inputs {
		if len(undefined) > 0 {
			removeDefined(undefined, in.path)
		}
	}
	var errs []error
	eachOtherPrefix(inputs, func(in *linkInput, symbol string, err error) {
		switch {
		case !undefined[symbol]:
		case in.isArchive() || in.optional:
			message.Warning(l.Stderr, err)
		default:
			errs = append(errs, err)
		}
	})
	return errors.Join(errs...)
}

// eachOtherPrefix calls a function with each file that has such records, the probe object of the
// first, and the error that says so.
func eachOtherPrefix(inputs []*linkInput, found func(in *linkInput, symbol string, err error)) {
	for _, in := range inputs {
		if in.needs == nil {
			continue
		}
		for _, err := range in.needs.conflicts {
			if prefix := (*patch.PrefixError)(nil); errors.As(err, &prefix) {
				found(in, prefix.Symbol, err)
			}
		}
	}
}

// removeDefined removes the names that a file defines.
func removeDefined(names map[string]bool, path string) {
	f, err := input.Open(path)
	if err != nil {
		return
	}
	defer f.Close()
	_ = f.Each(input.Options{FollowThin: true}, func(src *input.Source) error {
		o, err := src.Image()
		if err != nil {
			return nil // the linker knows what it is
		}
		symbols := o.Symbols
		if o.Type == elf.ET_DYN {
			symbols = o.DynamicSymbols
		}
		syms, err := symbols()
		if err != nil {
			return nil
		}
		for i := max(1, syms.FirstGlobal()); i < syms.Len(); i++ {
			if syms.At(i).Section != 0 {
				delete(names, syms.Name(i))
			}
		}
		return nil
	})
}
