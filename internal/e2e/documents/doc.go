// Package documents holds tests of README.md and the pages of docs: they run the commands that the
// pages show, from their text, and compare what is printed; they put the line for each build system
// into a project; and they run each makefile with a sdtconvert that fails. A table lists each
// fenced block of the pages, with the test that runs it, here or elsewhere, or why none does.
//
// The oracles are the pages themselves, and make, CMake and Meson: a build whose conversion fails
// has to fail, again too, and leave no program.
package documents
