package replace

import (
	"io"
	"os"
	"path/filepath"
	"slices"

	"sdtconvert/elfreloc"
	"sdtconvert/internal/input"
	"sdtconvert/internal/paths"
)

// Stream is an output that is written while its end is still being decided on, and its
// beginning, which depends on all of it. It is for archives: no member is kept in
// memory until the last one is known.
type Stream struct {
	writer *Writer
	path   string // that is asked for
	in     *input.File
	temp   *temporary
	target string // the regular file that is replaced, or made; "" for a device or a pipe
	gap    int64  // bytes that are left for the beginning
	size   int64  // of the gap and what was added
}

// Stream begins an output, made from in, that is to be written to path as File does, with
// room for a beginning of so many bytes. Discard is called in any case.
func (w *Writer) Stream(path string, in *input.File, gap int64) (*Stream, error) {
	s := &Stream{writer: w, path: path, in: in, gap: gap, size: gap}
	if err := s.createTemp(); err != nil {
		return nil, err
	}
	_, err := s.temp.Seek(gap, io.SeekStart)
	return s, s.named(err)
}

func (s *Stream) createTemp() error {
	if s.writer.TakeDescriptor != nil {
		f, err := s.writer.createUnnamed(s.path, s.in.Size())
		s.target, s.temp = s.path, &temporary{File: f, writer: s.writer, unnamed: true}
		return err
	}
	target, regular, err := resolve(s.path)
	if err != nil {
		return err
	}
	if regular {
		s.target = target
	} else {
		target = paths.Join(os.TempDir(), filepath.Base(target))
	}
	s.temp, err = s.writer.createTemp(target, 0o600)
	return err
}

// Add writes what follows what was added before.
func (s *Stream) Add(extents []elfreloc.Extent) error {
	out := output(extents)
	s.size += out.Size
	return s.named(writeOutput(s.temp.File, s.in, out))
}

// named says of an error in writing the file what it was to become.
func (s *Stream) named(err error) error {
	if s.target == "" {
		return err
	}
	return s.temp.withTargetName(err, s.target)
}

// Finish writes the beginning, and gives the file its name. Where the beginning does not
// fit its gap, or the path stands for no regular file, all is copied once more.
func (s *Stream) Finish(begin []elfreloc.Extent) error {
	out := output(begin)
	if s.target == "" || out.Size != s.gap {
		return s.copyBehind(begin)
	}
	_, err := s.temp.Seek(0, io.SeekStart)
	if err == nil {
		err = writeOutput(s.temp.File, s.in, out)
	}
	switch {
	case err == nil && s.temp.unnamed:
		return s.in.CheckUnchanged()
	case err == nil:
		err = s.temp.replaceTarget(s.target, s.in)
	}
	return s.named(err)
}

// copyBehind writes all anew.
func (s *Stream) copyBehind(begin []elfreloc.Extent) error {
	rest, err := input.Open(s.temp.Name())
	if err != nil {
		return err
	}
	defer rest.Close()
	return s.writer.File(s.path, s.in, output(append(slices.Clip(begin), elfreloc.Extent{From: rest, Src: s.gap, Len: s.size - s.gap})))
}

// Discard removes the file unless it has its name.
func (s *Stream) Discard() {
	if s != nil {
		s.temp.discard()
	}
}
