// Package states compares what the program says of probes where names are missing, or are
// other ones, with what it says of the same file as it was linked, by the default names.
package states
