// Package ptrace is the processes that a tracer holds by ptrace(2): their threads, memory, registers and stops, and what the kernel
// says of them in /proc. Calls of ptrace come from one thread of the system; other goroutines read and write
// memory by ReadAt and Write.
package ptrace
