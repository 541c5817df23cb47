// Package attach holds no code, only tests: they convert a test program with
// --stapsdt, link it with real linkers in every mode, and have the tracers of
// user space read its notes, stop at its probes and print their arguments.
//
// The oracle is the unconverted twin, whose stubs print what they are called
// with. What notes say of addresses is compared with the records that `sdtconvert
// list` reads: there is a note for each record of a probe call, and no other.
//
// Of the notes of --dtrace, which no tracer of Debian 12 reads, the functions are
// compared with addr2line. DTrace itself reads them in scripts/dtrace-boot.
//
// Most of their time these tests wait, and `go test` begins with the packages whose paths come
// first: so they have the processors of tests that compute beside them.
package attach
