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
func (l *link) checkPrefixes(files []*servedFile) error {
	undefined := map[string]bool{}
	eachOtherPrefix(files, func(_ *servedFile, symbol string, _ error) { undefined[symbol] = true })
	for _, f := range files {
		if len(undefined) > 0 {
			removeDefined(undefined, f.path)
		}
	}
	var errs []error
	eachOtherPrefix(files, func(f *servedFile, symbol string, err error) {
		switch {
		case !undefined[symbol]:
		case f.isArchive() || f.isOptional:
			message.Warning(l.Stderr, err)
		default:
			errs = append(errs, err)
		}
	})
	return errors.Join(errs...)
}

// eachOtherPrefix calls a function for each record of another prefix: with its file, the probe object that it
// names, and the error that says so.
func eachOtherPrefix(files []*servedFile, call func(f *servedFile, symbol string, err error)) {
	for _, f := range files {
		if f.needs == nil {
			continue
		}
		for _, err := range f.needs.conflicts {
			if prefix := (*patch.PrefixError)(nil); errors.As(err, &prefix) {
				call(f, prefix.Symbol, err)
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
