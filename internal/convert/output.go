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
	if out == nil && target != in.Path && !c.SkipUnchanged {
		size := in.Size()
		out = &elfreloc.Output{Size: size, Extents: []elfreloc.Extent{{Len: size}}}
	}
	if out == nil || c.DryRun {
		return nil
	}
	return c.withOutputHint(c.writer.File(target, in, out), in, target)
}

// withOutputHint adds to an error in writing a file what to do about it.
func (c *Converter) withOutputHint(err error, in *input.File, target string) error {
	if replace.IsReadOnly(err) && target == in.Path && c.SuggestOutput {
		return fmt.Errorf("%w; write the result elsewhere with -o or --output-dir", err)
	}
	return err
}
