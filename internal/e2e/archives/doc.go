// Package archives compares what the program makes of archives with what the
// archivers make of converted objects.
package archives
