// Package e2e holds the tests of the whole program, a directory for each subject.
// README.md is their map.
package e2e
