// Package header holds no code, only tests of include/sdt.h: they compile
// the programs of testdata with every compiler and standard, convert and link
// them with every linker in every mode, and run them. A converted program walks
// its own linker sets and records (testdata/show.c), and prints what it finds;
// its unconverted twin, compiled to calls, has stubs that print their arguments. Each
// tracepoint is run once, so there must be as many records of a probe as calls of its
// stub. What NOPs say of their arguments is read from objects, and semaphores
// are counted up by the programs themselves. gdb reads memory at the sites of random
// programs, and functions that a twin calls in their place.
package header
