package ld

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/filetype"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/replace"
	"sdtconvert/internal/supervise"
)

// inputs are the files that a supervised linker reads, each once, by whatever paths it is named.
type inputs struct {
	*link
	examiner  *examiner
	converter *convert.Converter
	collector *needsCollector

	mu       sync.Mutex // of the rest
	files    map[supervise.Identity]*servedFile
	order    []*servedFile // as they were met
	outputs  map[string]int
	held     int // descriptors
	maxHeld  int
	warnings message.Tally
	busy     sync.WaitGroup // files that are looked at
}

// servedFile is a file as it was when its identity was taken.
type servedFile struct {
	ready    chan struct{} // closed when all but what the lock guards is known
	in       *linkInput
	binary   bool // it is linked as it is, and no object
	mixed    bool // it is linked both ways
	isOnLine bool // by the line

	converted bool   // other bytes take its place
	refusal   []byte // why it cannot be converted, to be printed if the linker opens it

	opened atomic.Bool // by the linker, or by what it runs

	fd int // of the converted bytes, -1 if they are not held; the lock of inputs is of it
}

// newInputs returns the files of a look, of which none is converted yet.
func newInputs(l *link, k *examiner, found lookResult) (*inputs, error) {
	s := &inputs{link: l, examiner: k, files: map[supervise.Identity]*servedFile{}, outputs: map[string]int{}, maxHeld: supervise.Descriptors() / 2}
	s.collector = &needsCollector{options: l.Convert.Patch, needs: map[string]*probeNeeds{}}
	o := l.conversion(0, l.probeSource(found.inputs))
	o.LinkGenerates, o.SkipUnchanged, o.FollowThin = true, true, true
	if !k.relocatable {
		o.Planned = s.collector.add
	}
	s.converter = convert.New(o, &replace.Writer{TakeDescriptor: s.holdOutput, TempDir: l.TempDir()})
	var members []*linkInput
	for i, h := range found.files {
		id, ok := supervise.Identify(h.path)
		if !ok {
			continue
		}
		f, in := s.files[id], found.inputs[i]
		switch {
		case f == nil:
			f = &servedFile{ready: make(chan struct{}), in: in, binary: in == nil, fd: -1}
			if in == nil {
				f.in = &linkInput{path: h.path, name: h.path}
			}
			s.files[id], s.order = f, append(s.order, f)
		case f.binary != (in == nil):
			f.mixed = true
		}
		f.isOnLine = f.isOnLine || h.isOnLine
		// Where the members of a thin archive are depends on the path that leads to it.
		if in != nil && (f.binary || in.probes) {
			f.in, f.binary = in, false
		}
		if in != nil {
			members = append(members, in.members...)
		}
	}
	var errs []error
	for _, f := range s.order {
		if f.mixed && f.in.probes && f.in.typ != filetype.ThinArchive {
			errs = append(errs, mixedUse(f.in.path))
		}
	}
	return s, errors.Join(append(errs, s.addMembers(members)...)...)
}

// addMembers adds the files with probes that a thin archive names: the linker opens them itself.
func (s *inputs) addMembers(members []*linkInput) (errs []error) {
	for _, member := range members {
		id, ok := supervise.Identify(member.path)
		switch f := s.files[id]; {
		case !ok:
		case f == nil:
			f = &servedFile{ready: make(chan struct{}), in: member, fd: -1}
			s.files[id], s.order = f, append(s.order, f)
		case f.binary:
			errs = append(errs, mixedUse(member.path))
		}
	}
	return errs
}

func mixedUse(path string) error {
	return fmt.Errorf("%s: holds probes, and is linked both as an object and as it is (--format=binary); give the linker a copy of it", path)
}

// holdOutput is the converter's, for the descriptor of an output.
func (s *inputs) holdOutput(path string, fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if old, again := s.outputs[path]; again {
		closeDescriptor(old)
	}
	s.outputs[path] = fd
}

// convertFiles converts files that were looked at, and reports what cannot be. Of a file that the line
// does not name itself, that is reported if the linker opens it.
func (s *inputs) convertFiles(files []*servedFile) (failed bool) {
	parallel.InOrder(len(files), s.Convert.Jobs, func(i int) *convert.Result {
		defer close(files[i].ready)
		return s.convert(files[i])
	}, func(i int, r *convert.Result) {
		switch f := files[i]; {
		case f.refusal != nil && f.isOnLine:
			s.Stderr.Write(bytes.ReplaceAll(f.refusal, []byte(f.in.path), []byte(f.in.name)))
			failed = true
		case r != nil && !r.Failed:
			r.Print(s.Stderr, &s.warnings)
		}
	})
	return failed
}

// convert converts a file that was looked at, if it is one to convert. The result is nil if not.
func (s *inputs) convert(f *servedFile) *convert.Result {
	in := f.in
	if in.err != nil {
		f.refuse(in.err)
		return nil
	}
	if f.binary || !in.probes {
		return nil
	}
	if !in.converts() {
		s.readNeeds(in)
		return nil
	}
	fd, r := s.write(in)
	s.mu.Lock()
	hold := fd >= 0 && s.held < s.maxHeld
	if hold {
		f.fd = fd
		s.held++
	}
	s.mu.Unlock()
	if fd >= 0 && !hold {
		closeDescriptor(fd)
	}
	if r.Failed {
		f.refusal = r.Messages.Bytes()
		return r
	}
	f.converted = fd >= 0
	if p := s.collector.take(in.path); p != nil && !in.generates {
		in.merge(p)
	} else {
		s.readNeeds(in)
	}
	return r
}

// unnamedSuffix makes what the converter writes to another file than the input.
const unnamedSuffix = " (converted)"

// write converts a file. fd is of the converted bytes, -1 for none.
func (s *inputs) write(in *linkInput) (fd int, r *convert.Result) {
	r = s.converter.File(in.path, in.path+unnamedSuffix)
	s.mu.Lock()
	defer s.mu.Unlock()
	fd, written := s.outputs[in.path+unnamedSuffix]
	delete(s.outputs, in.path+unnamedSuffix)
	if written && r.Failed {
		closeDescriptor(fd)
	}
	if !written || r.Failed {
		fd = -1
	}
	return fd, r
}

// readNeeds reads what a file with probes needs of the link. Of what code is generated of, the look
// has read it, but for the other members of an archive.
func (s *inputs) readNeeds(in *linkInput) {
	if !s.examiner.relocatable && (in.isArchive() || in.typ == filetype.ELF && !in.generates) {
		in.merge(readNeeds(s.Convert.Patch, in.path))
	}
}

// merge adds needs to those of the file.
func (in *linkInput) merge(p *probeNeeds) {
	if in.needs == nil {
		in.needs = p
		return
	}
	in.needs.definitions.Merge(p.definitions)
	in.needs.earlier = in.needs.earlier || p.earlier
	in.needs.conflicts = append(in.needs.conflicts, p.conflicts...)
	in.needs.err = errors.Join(in.needs.err, p.err)
	for kind := range p.records {
		in.needs.records[kind] = in.needs.records[kind] || p.records[kind]
	}
	if in.needs.lto == nil {
		in.needs.lto = p.lto
	}
}

func (f *servedFile) refuse(err error) {
	var text bytes.Buffer
	message.Error(&text, err)
	f.refusal = text.Bytes()
}

// has reports whether a file was met.
func (s *inputs) has(id supervise.Identity) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.files[id] != nil
}

// lookup returns the file of an identity, which may not be ready yet: it is looked at, and converted,
// when it is met for the first time. path leads to it, and name is what the linker calls it.
func (s *inputs) lookup(id supervise.Identity, path, name string, met func(f *servedFile)) *servedFile {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.files[id]
	if f != nil {
		return f
	}
	f = &servedFile{ready: make(chan struct{}), fd: -1}
	s.files[id], s.order = f, append(s.order, f)
	s.busy.Go(func() {
		if same, ok := supervise.Identify(name); ok && same == id {
			path = name
		}
		f.in = s.examiner.examine(path, name)
		if r := s.convert(f); r != nil && !r.Failed {
			s.mu.Lock()
			r.Print(s.Stderr, &s.warnings)
			s.mu.Unlock()
		}
		met(f)
		close(f.ready)
	})
	return f
}

// open opens the converted bytes of a file anew, so that offsets are the linker's own. They are
// converted anew, too, if they are not held.
func (s *inputs) open(f *servedFile) (fd int, err error) {
	s.mu.Lock()
	held := f.fd
	s.mu.Unlock()
	if held < 0 {
		if held, _ = s.write(f.in); held < 0 {
			return -1, fmt.Errorf("%s: %w", f.in.name, input.ErrChanged)
		}
		s.collector.take(f.in.path)
		defer closeDescriptor(held)
	}
	return openDescriptor(descriptorPath(held))
}

// descriptorPath returns a path of what a descriptor of this process stands for.
func descriptorPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// list returns the files that are known by now, once they were looked at: with opened those that the
// linker has opened.
func (s *inputs) list(opened bool) (inputs []*linkInput) {
	s.mu.Lock()
	order := s.order[:len(s.order):len(s.order)]
	s.mu.Unlock()
	for _, f := range order {
		if <-f.ready; !f.binary && (!opened || f.opened.Load()) {
			inputs = append(inputs, f.in)
		}
	}
	return inputs
}

// unconverted returns the inputs that the linker has read as they are.
func (s *inputs) unconverted() (inputs []*linkInput) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.order {
		if f.isReady() && !f.converted && !f.in.isShared() {
			inputs = append(inputs, f.in)
		}
	}
	return inputs
}

// readyWith returns the inputs that are ready, and that of f.
func (s *inputs) readyWith(f *servedFile) (inputs []*linkInput) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, candidate := range s.order {
		if (candidate == f || candidate.isReady()) && !candidate.binary {
			inputs = append(inputs, candidate.in)
		}
	}
	return inputs
}

func (f *servedFile) isReady() bool {
	select {
	case <-f.ready:
		return true
	default:
		return false
	}
}

// close closes what is held.
func (s *inputs) close() {
	s.busy.Wait()
	for _, f := range s.order {
		if f.fd >= 0 {
			closeDescriptor(f.fd)
		}
	}
	s.warnings.Print(s.Stderr)
}
