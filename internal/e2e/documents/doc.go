// Package documents holds tests of README.md, docs/first-steps.md and docs/builds.md: they run the
// commands that these pages show, from their text, and compare what is printed; they put the line
// for each build system into a project; and they run each makefile with a sdtconvert that fails.
//
// The oracles are the pages themselves, and make, CMake and Meson: a build whose conversion fails
// has to fail, again too, and leave no program.
package documents
