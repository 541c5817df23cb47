package debugfile

import (
	"sync"

	"sdtconvert/elfreloc"
)

// Shared is the debug file of an image for several readers: its symbols name
// functions, and its DWARF tells source lines. It is looked for once, when it is
// first asked for, so that its build id and its CRC-32 are read once. It may be
// used from several goroutines, but not the Object that it gives.
type Shared struct {
	open func() (*File, error)

	mu   sync.Mutex
	file *File // to be closed; nil while it is not open
}

// Share is Open for several readers; it does not look for the file yet.
func Share(image *elfreloc.Object, path string, roots []string) *Shared {
	s := &Shared{}
	s.open = sync.OnceValues(func() (*File, error) {
		f, err := Open(image, path, roots)
		s.mu.Lock()
		defer s.mu.Unlock()
		s.file = f
		return f, err
	})
	return s
}

// Object returns the debug file, nil when there is none; its Name is its path. The
// error is that of Open, and each call returns the same. The object reads the file
// until Close.
func (s *Shared) Object() (*elfreloc.Object, error) {
	f, err := s.open()
	if f == nil {
		return nil, err
	}
	return f.Object, err
}

// Close closes the file, if it was ever opened.
func (s *Shared) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.file == nil {
		return nil
	}
	f := s.file
	s.file = nil
	return f.Close()
}
