// Package supervise runs a program, and decides what it reads where it opens files.
//
// The program runs under a filter of system calls (seccomp_unotify(2)) that stops open,
// openat and openat2 for reading, in the program and in all that it starts. For each such
// open a function is called, which lets it go on, gives the program a descriptor of its
// own choice, or fails it. Nothing else of the program changes: its arguments, its
// directory, its streams and its process are its own.
//
// A filter is a thread's, and what the thread starts inherits it. So one thread of this
// process, which does nothing else, installs the filter and starts the program.
package supervise

import "fmt"

// UnavailableError says what keeps a program from being supervised here.
type UnavailableError struct {
	What string // forbids it
	Err  error  // of the system, or nil
}

// Error names what forbids it.
func (e *UnavailableError) Error() string {
	if e.Err == nil {
		return e.What
	}
	return fmt.Sprintf("%s: %v", e.What, e.Err)
}

// Unwrap returns the error of the system.
func (e *UnavailableError) Unwrap() error { return e.Err }
