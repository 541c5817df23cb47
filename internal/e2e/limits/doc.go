// Package limits measures what files made to be expensive cost the program: each
// is of a given size, which is all that its memory and time may depend on. The tests run on
// Linux, which counts both.
package limits
