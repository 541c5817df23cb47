package convert

import (
	"cmp"
	"debug/elf"
	"fmt"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/replace"
)

// draft starts to write the output of a large object that will probably change.
func (c *Converter) draft(o *input.Object, target string) *replace.Draft {
	if c.DryRun || o.Source.Size <= input.LoadMax {
		return nil
	}
	return c.writer.Draft(target, o.Source.File, stableSections(o.Object))
}

// stableSections lists sections, in the order of the file, that will probably stay what and
// where they are: they hold neither code nor tables, and stand before the symbol table,
// which is the first to grow. There are none in an object whose sections overlap.
func stableSections(o *elfreloc.Object) (stable []elfreloc.Section) {
	if o.CheckOverlap() != nil {
		return nil
	}
	sections := slices.Clone(o.Sections)
	slices.SortStableFunc(sections, func(a, b elfreloc.Section) int { return cmp.Compare(a.Offset, b.Offset) })
	for i := range sections {
		switch s := &sections[i]; {
		case s.Type == elf.SHT_SYMTAB || s.Type == elf.SHT_STRTAB:
			return stable
		case s.Type == elf.SHT_PROGBITS && s.InFile() && !s.Executable():
			stable = append(stable, *s)
		}
	}
	return stable
}

// write writes what becomes of a file: the output or, where it is nil, the file itself
// if there is to be a copy.
func (c *Converter) write(in *input.File, target string, out *elfreloc.Output, draft *replace.Draft) error {
	if out == nil && target != in.Path && !c.Fresh {
		size := in.Size()
		out = &elfreloc.Output{Size: size, Extents: []elfreloc.Extent{{Len: size}}}
	}
	if out == nil || c.DryRun {
		return nil
	}
	return c.unwritten(c.writer.File(target, in, out, c.options(in, target, draft)), in, target)
}

// options say how what becomes of a file is written.
func (c *Converter) options(in *input.File, target string, draft *replace.Draft) replace.Options {
	return replace.Options{Draft: draft, Workers: c.Jobs, Fresh: c.Fresh && target != in.Path}
}

// unwritten adds to an error in writing a file what to do about it.
func (c *Converter) unwritten(err error, in *input.File, target string) error {
	if replace.IsReadOnly(err) && target == in.Path && c.Elsewhere {
		return fmt.Errorf("%w; write the result elsewhere with -o or --output-dir", err)
	}
	return err
}
