// Package inject puts code and memory into a process: areas of code, shared memory, a handler of SIGTRAP. A thread of the process makes the
// system calls that this needs. Everything that is mapped is in one ledger, which the next tracer finds.
package inject
