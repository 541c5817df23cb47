// Package safety holds no code, only tests that run the program where things go
// wrong: it is killed at each of its system calls, disks are full, files change
// under way. Whatever happens, a file is its old self or its converted self, and
// nothing is left beside it.
package safety
