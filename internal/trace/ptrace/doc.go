// Package ptrace is the processes that a tracer holds by ptrace(2): their threads, memory, registers and stops, and what the kernel
// says of them in /proc. All of its calls come from one thread of the system.
package ptrace
