// Package ld links with real linkers through sdtconvert, by itself and from
// compilers and build systems.
package ld
