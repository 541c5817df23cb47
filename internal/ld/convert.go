package ld

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"sdtconvert/internal/convert"
	"sdtconvert/internal/input"
	"sdtconvert/internal/message"
	"sdtconvert/internal/parallel"
	"sdtconvert/internal/replace"
	"sdtconvert/internal/supervise"
)

// conversion is what became of the files of a link. It does not change.
type conversion struct {
	files      []*servedFile // in the order in which the look, and then the linker, came to them
	byIdentity map[supervise.Identity]*servedFile
}

// servedFile is a file as it was when its identity was taken, and what the linker gets for it. It does not change after its
// conversion.
type servedFile struct {
	*inputFile
	identity     supervise.Identity // by which the linker's opens lead to it
	isSurelyRead bool               // the line names it
	needs        *probeNeeds        // what its probes need of the link; nil for nothing
	isConverted  bool               // other bytes take its place
	refusal      []byte             // the message why it cannot be converted, printed if the linker opens it
	descriptor   int                // of the converted bytes, -1 if they are not held
}

// withFiles returns the conversion with more files, after its own.
func (c conversion) withFiles(files ...*servedFile) conversion {
	with := conversion{slices.Concat(c.files, files), maps.Clone(c.byIdentity)}
	if with.byIdentity == nil {
		with.byIdentity = map[supervise.Identity]*servedFile{}
	}
	for _, f := range files {
		with.byIdentity[f.identity] = f
	}
	return with
}

// withoutData returns the files that are not linked as data.
func withoutData(files []*servedFile) []*servedFile {
	return slices.DeleteFunc(slices.Clone(files), func(f *servedFile) bool { return f.isData })
}

// unconverted returns the files that the linker reads as they are.
func (c conversion) unconverted() (inputs []*inputFile) {
	for _, f := range c.files {
		if !f.isConverted && !f.isShared() {
			inputs = append(inputs, f.inputFile)
		}
	}
	return inputs
}

// contains reports whether one of the files has a property.
func (c conversion) contains(property func(*servedFile) bool) bool {
	return slices.ContainsFunc(c.files, property)
}

// fileConverter converts files, to descriptors of files without a name. Several goroutines use it.
type fileConverter struct {
	*link
	examiner  *examiner
	converter *convert.Converter
	collector *needsCollector

	mu       sync.Mutex     // of the rest
	outputs  map[string]int // descriptors that the converter has written, by path
	held     []int          // descriptors of converted bytes, at most maxHeld
	others   []int          // descriptors that are closed with these
	maxHeld  int
	warnings message.Tally
}

// newFileConverter returns a converter. Notes take definitions of probes from the inputs, which are those of the look.
func newFileConverter(l *link, e *examiner, inputs []*inputFile) *fileConverter {
	c := &fileConverter{link: l, examiner: e, outputs: map[string]int{}, maxHeld: supervise.Descriptors() / 2}
	c.collector = &needsCollector{options: l.Convert.Patch, needs: map[string]map[int64]*probeNeeds{}}
	o := l.conversionOptions(0, l.probeSource(inputs))
	o.LinkGenerates, o.SkipUnchanged, o.FollowThin = true, true, true
	if !e.isRelocatable {
		o.Planned = c.collector.add
	}
	c.converter = convert.New(o, &replace.Writer{TakeDescriptor: c.takeOutput, TempDir: l.TempDir()})
	return c
}

// takeOutput gets the descriptor of an output from the converter.
func (c *fileConverter) takeOutput(path string, fd int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if earlier, ok := c.outputs[path]; ok {
		closeDescriptor(earlier)
	}
	c.outputs[path] = fd
}

// convertAll converts the files that the look found. It prints each refusal of a file that the line names, in
// the order of the files, and then fails with errReported. Any other refusal is printed if the linker opens the
// file.
func (c *fileConverter) convertAll(files []*servedFile) (conversion, error) {
	isRefused := false
	parallel.InOrder(len(files), c.Convert.Jobs, func(i int) *convert.Result { return c.convert(files[i]) }, func(i int, r *convert.Result) {
		if f := files[i]; f.refusal != nil && f.isSurelyRead {
			c.Stderr.Write(bytes.ReplaceAll(f.refusal, []byte(f.path), []byte(f.name)))
			isRefused = true
			return
		}
		c.print(r)
	})
	if isRefused {
		return conversion{}, errReported
	}
	return conversion{}.withFiles(files...), nil
}

// convert converts a file if its bytes are to be converted. The result is nil if they are not.
func (c *fileConverter) convert(f *servedFile) *convert.Result {
	in := f.inputFile
	f.needs, f.descriptor = in.needs, -1
	switch {
	case in.err != nil:
		f.refusal = refusalOf(in.err)
		return nil
	case in.isData || !in.callsStubs:
		return nil
	case !in.isConvertible():
		f.needs = c.completeNeeds(in)
		return nil
	}
	fd, r := c.write(in)
	if r.Failed {
		f.refusal = r.Messages.Bytes()
		return r
	}
	f.isConverted = fd >= 0
	if fd >= 0 && c.hold(fd) {
		f.descriptor = fd
	}
	if needs := c.collector.take(in.path); needs != nil && !in.generatesProbes {
		f.needs = mergeNeeds(c.Convert.Patch, in.needs, needs)
	} else {
		f.needs = c.completeNeeds(in)
	}
	return r
}

// hold keeps a descriptor open until close, or closes it if there are too many.
func (c *fileConverter) hold(fd int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) >= c.maxHeld {
		closeDescriptor(fd)
		return false
	}
	c.held = append(c.held, fd)
	return true
}

// closeLater keeps other descriptors open until close.
func (c *fileConverter) closeLater(fds ...int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.others = append(c.others, fds...)
}

// unnamedSuffix makes the path of an output another one than that of its input. No file gets that name.
const unnamedSuffix = " (converted)"

// write converts a file. fd is of the converted bytes, -1 for none.
func (c *fileConverter) write(in *inputFile) (fd int, r *convert.Result) {
	r = c.converter.File(in.path, in.path+unnamedSuffix)
	c.mu.Lock()
	defer c.mu.Unlock()
	fd, isWritten := c.outputs[in.path+unnamedSuffix]
	delete(c.outputs, in.path+unnamedSuffix)
	if isWritten && r.Failed {
		closeDescriptor(fd)
	}
	if !isWritten || r.Failed {
		fd = -1
	}
	return fd, r
}

// completeNeeds returns the needs that the look found, and those that a file with probes has besides. The look
// finds all needs of what code is generated of, but not those of the other members of an archive.
func (c *fileConverter) completeNeeds(in *inputFile) *probeNeeds {
	if c.examiner.isRelocatable || !in.isArchive() && (in.format != input.ELFFile || in.generatesProbes) {
		return in.needs
	}
	return mergeNeeds(c.Convert.Patch, in.needs, readNeeds(c.Convert.Patch, in.path))
}

// refusalOf returns an error as it is printed.
func refusalOf(err error) []byte {
	var text bytes.Buffer
	message.Error(&text, err)
	return text.Bytes()
}

// print prints what a conversion reports, unless it has failed: a refusal is printed for the file. The result
// may be nil.
func (c *fileConverter) print(r *convert.Result) {
	if r == nil || r.Failed {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	r.Print(c.Stderr, &c.warnings)
}

// open opens the converted bytes of a file anew, so that offsets are the linker's own. If they are not held, the
// file is converted again.
func (c *fileConverter) open(f *servedFile) (fd int, err error) {
	held := f.descriptor
	if held < 0 {
		if held, _ = c.write(f.inputFile); held < 0 {
			return -1, fmt.Errorf("%s: %w", f.name, input.ErrChanged)
		}
		c.collector.take(f.path)
		defer closeDescriptor(held)
	}
	return openDescriptor(descriptorPath(held))
}

// descriptorPath returns a path of what a descriptor of this process stands for.
func descriptorPath(fd int) string { return "/proc/self/fd/" + strconv.Itoa(fd) }

// close closes the descriptors that are held, and prints the warnings.
func (c *fileConverter) close() {
	for _, fd := range slices.Concat(c.held, c.others) {
		closeDescriptor(fd)
	}
	c.warnings.Print(c.Stderr)
}
