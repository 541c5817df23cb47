// Package links holds no code, only tests: they compile the test program of
// testdata/objs, convert its objects with the real sdtconvert, link them with
// real linkers in every mode and run the results, under an emulator where the
// machine is another.
//
// The oracle is the unconverted twin: the same objects with real stubs, linked
// the same way. What the twin prints the converted program must print, and
// where objdump finds calls of stubs in the twin there must be records, no more
// and no fewer. Linked images are read with debug/elf and binutils, never with
// this project's own reader, so that one mistake cannot hide another.
//
// Where the twin fails to link or to run, the combination is skipped: what the
// tools cannot do unconverted they need not do converted.
package links
