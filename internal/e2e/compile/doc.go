// Package compile runs compilers through sdtconvert cc, by itself and from make
// and the programs that cache and distribute compilations. The objects are those of the
// compiler alone that were converted afterwards.
package compile
