//go:build !linux

package supervise

// Supervisor supervises a program.
type Supervisor struct{}

// Open is an attempt to open a file.
type Open struct {
	PID   int
	Path  string
	File  string
	Write bool
	Err   error
}

// Continue lets the program open the file by itself.
func (*Open) Continue() {}

// Give answers with a descriptor.
func (*Open) Give(int) {}

// Fail answers with an error.
func (*Open) Fail(error) {}

// CheckReachable finds nothing wrong.
func (*Open) CheckReachable() error { return nil }

// Identity is what distinguishes a file, as it is now, from all others.
type Identity struct{}

// Identify knows no file.
func Identify(string) (id Identity, ok bool) { return id, false }

// Options say which opens are answered.
type Options struct{ Writes bool }

// New fails: only Linux can stop a program where it opens a file.
func New(Options) (*Supervisor, error) {
	return nil, &UnavailableError{What: "only Linux can stop a linker where it opens a file"}
}

// Start does nothing.
func (*Supervisor) Start(func() error, func(*Open)) error { return nil }

// Go runs nothing.
func (*Supervisor) Go(func()) {}

// Close ends the supervision.
func (*Supervisor) Close() {}

// Descriptors returns how many descriptors this process may have.
func Descriptors() int { return 256 }

// Terminate does nothing.
func Terminate(int) {}

// Executable knows no process.
func Executable(int) (string, error) { return "", nil }
