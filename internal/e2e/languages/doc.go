// Package languages holds tests of docs/languages.md: they write the programs that it shows
// for each language, run the steps that it shows, and trace the programs with gdb as it
// shows. So what it says works, in debug and optimised builds.
//
// The oracles are the programs, which have to print what they print without probes, and gdb,
// which has to stop at each probe, find its arguments, and make guards true.
package languages
