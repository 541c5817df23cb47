// Package inject puts code and memory into a process: areas of code, shared memory, a handler of SIGTRAP. A thread of the process makes the
// system calls that this needs. A ledger names shared memory, hops, the table and raised semaphores for the next tracer, which finds areas by
// their first bytes.
package inject
