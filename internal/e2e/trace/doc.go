// Package trace holds no code, only tests: they compile programs, run `sdtconvert trace` on them, and
// compare the events with what the programs themselves print, argument by argument. A program that is
// traced has to compute what it computes untraced, whatever happens to the tracer.
package trace
