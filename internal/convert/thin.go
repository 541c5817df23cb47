package convert

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/archive"
	"sdtconvert/internal/input"
	"sdtconvert/internal/parallel"
)

// convertThin converts the files that a thin archive names, as files of their own, and sets their sizes in its
// headers. If one of the files cannot be opened, none is converted. What an interrupted run has left is completed by
// another one.
func (c *Converter) convertThin(a *input.Archive, r *Result) error {
	files, err := c.thinFiles(a)
	if err != nil {
		return err
	}
	convertFile := func(i int) *Result { return c.File(files[i], files[i]) }
	parallel.InOrder(len(files), c.memberJobs, convertFile, func(_ int, m *Result) { r.addResult(m) })
	sizes := map[string]int64{}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			return err
		}
		sizes[file] = info.Size()
	}
	out, err := a.Resized(sizes)
	if err != nil || out == nil {
		return err
	}
	return c.write(a.File, a.File.Path, out)
}

// thinFiles returns the paths of the objects that a thin archive names, each once. Members of other types are no
// error in an archive.
func (c *Converter) thinFiles(a *input.Archive) (files []string, _ error) {
	var errs []error
	seen := map[string]bool{}
	err := a.Each(func(src *input.Source) error {
		if src.Err() != nil {
			errs = append(errs, src.Err())
			return nil
		}
		_, err := src.Relocatable(c.stubTexts)
		if path := src.File.Path; !errors.Is(err, input.ErrSkipped) && !seen[path] {
			files, seen[path] = append(files, path), true // File reports other errors
		}
		return nil
	})
	return files, errors.Join(append(errs, err)...)
}

// collect makes a regular archive of a thin one, with its members converted inside.
func (c *Converter) collect(a *input.Archive, target string, r *Result) error {
	to := a.Collect()
	return c.writeArchive(a, target, r, to, func(m *member) error {
		changed, err := collectedMember(a, m)
		if err != nil {
			return err
		}
		return to.Add(m.src.Member, filepath.Base(m.src.Member.Name), changed)
	})
}

// collectedMember returns what a member of a thin archive becomes inside of a regular one.
func collectedMember(a *input.Archive, m *member) (changed archive.Change, err error) {
	if m.output == nil {
		changed.Output = &elfreloc.Output{Size: m.src.Size, Extents: []elfreloc.Extent{{Len: m.src.Size}}}
	} else if changed, err = memberChange(a, m.src, m.object, m.output); err != nil {
		return changed, err
	}
	extents := slices.Clone(changed.Output.Extents)
	for i := range extents {
		if x := &extents[i]; x.Data == nil && x.From == nil {
			x.From = namedReader{m.src}
		}
	}
	changed.Output = &elfreloc.Output{Size: changed.Output.Size, Extents: extents}
	return changed, nil
}

// namedReader reads a source, and names it where it has become shorter.
type namedReader struct{ *input.Source }

// ReadAt implements io.ReaderAt.
func (r namedReader) ReadAt(b []byte, off int64) (int, error) {
	n, err := r.Source.ReadAt(b, off)
	if n < len(b) && errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s: %w", r.Name, input.ErrChanged)
	}
	return n, err
}
