package replace

import (
	"os"
	"path/filepath"
	"slices"
	"sync"

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
	place  string // of the regular file that is replaced, or made; "" for a device or a pipe
	gap    int64  // bytes that are left for the beginning
	at     int64  // where the next part goes
	parts  chan part
	queued sync.WaitGroup // parts that are not written yet
	err    error          // of the first that could not be, once none is queued
}

// Stream begins an output, made from in, that is to be written to path as File does, with
// room for a beginning of so many bytes. Discard is called in any case.
func (w *Writer) Stream(path string, in *input.File, gap int64) (*Stream, error) {
	if w.Unnamed != nil {
		f, err := w.createUnnamed(path, in.Size())
		if err != nil {
			return nil, err
		}
		s := &Stream{writer: w, path: path, in: in, gap: gap, at: gap, parts: make(chan part, 16), place: path}
		s.temp = &temporary{file: f, writer: w, done: true}
		go s.work()
		return s, nil
	}
	target, regular, err := resolve(path)
	if err != nil {
		return nil, err
	}
	s := &Stream{writer: w, path: path, in: in, gap: gap, at: gap, parts: make(chan part, 16)}
	if regular {
		s.place = target
	} else {
		target = paths.Join(os.TempDir(), filepath.Base(target))
	}
	if s.temp, err = w.createTemp(target, 0o600); err != nil {
		return nil, err
	}
	go s.work()
	return s, nil
}

func (s *Stream) work() {
	for p := range s.parts {
		if s.err == nil {
			s.err = writePart(s.temp.file, s.in, p)
		}
		s.queued.Done()
	}
}

// Add writes what follows what was added before. It returns before all is written: until
// Wait returns, what the extents are made of has to stay.
func (s *Stream) Add(extents []elfreloc.Extent) {
	if len(extents) > 0 {
		s.queued.Add(1)
		s.parts <- part{s.at, extents}
		s.at += length(extents)
	}
}

// Wait returns once all that was added is written, or could not be.
func (s *Stream) Wait() error {
	s.queued.Wait()
	return s.named(s.err)
}

// named says of an error in writing the file what it was to become.
func (s *Stream) named(err error) error {
	if s.place == "" {
		return err
	}
	return s.temp.named(err, s.place)
}

// Finish writes the beginning, and gives the file its name. Where the beginning does not
// fit its gap, or the path stands for no regular file, all is copied once more.
func (s *Stream) Finish(begin []elfreloc.Extent, o Options) error {
	if err := s.Wait(); err != nil {
		return err
	}
	if s.place == "" || length(begin) != s.gap {
		return s.copyBehind(begin, o)
	}
	if err := writePart(s.temp.file, s.in, part{0, begin}); err != nil {
		return s.named(err)
	}
	if s.writer.Unnamed != nil {
		return s.in.Unchanged()
	}
	return s.named(s.temp.takePlace(s.place, s.in))
}

// copyBehind writes all anew.
func (s *Stream) copyBehind(begin []elfreloc.Extent, o Options) error {
	rest, err := input.Open(s.temp.Name())
	if err != nil {
		return err
	}
	defer rest.Close()
	all := append(slices.Clip(begin), elfreloc.Extent{From: rest, Src: s.gap, Len: s.at - s.gap})
	return s.writer.File(s.path, s.in, &elfreloc.Output{Size: length(all), Extents: all}, o)
}

func length(extents []elfreloc.Extent) (n int64) {
	for i := range extents {
		n += extents[i].Len
	}
	return n
}

// Discard ends the stream, and removes the file unless it has its name.
func (s *Stream) Discard() {
	if s != nil {
		close(s.parts)
		s.queued.Wait()
		s.temp.discard()
	}
}
