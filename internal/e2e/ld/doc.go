// Package ld links with real linkers through sdtconvert, by itself and from
// compilers; TestBuilds of internal/e2e/documents has the build systems.
package ld
