// Package tracers holds no code, only tests: they convert a test program with
// --stapsdt, link it with real linkers in every mode, and have the tracers of
// user space read its notes, stop at its probes and print their arguments.
//
// The oracle is the unconverted twin, whose stubs print what they are called
// with. What notes say of addresses is compared with the records that `sdtconvert
// list` reads: there is a note for each record of a probe call, and no other.
package tracers
