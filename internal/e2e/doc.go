// Package e2e holds the tests of the whole program, a folder for each subject.
// README.md is their map.
package e2e
