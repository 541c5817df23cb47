package convert

import (
	"fmt"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/replace"
)

// write writes what becomes of a file: the output or, where it is nil, the file itself
// if there is to be a copy.
func (c *Converter) write(in *input.File, target string, out *elfreloc.Output) error {
	if out == nil && target != in.Path && !c.Fresh {
		size := in.Size()
		out = &elfreloc.Output{Size: size, Extents: []elfreloc.Extent{{Len: size}}}
	}
	if out == nil || c.DryRun {
		return nil
	}
	return c.unwritten(c.writer.File(target, in, out), in, target)
}

// unwritten adds to an error in writing a file what to do about it.
func (c *Converter) unwritten(err error, in *input.File, target string) error {
	if replace.IsReadOnly(err) && target == in.Path && c.Elsewhere {
		return fmt.Errorf("%w; write the result elsewhere with -o or --output-dir", err)
	}
	return err
}
