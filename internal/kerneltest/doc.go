// Package kerneltest holds a test on the modules of a real Linux kernel.
package kerneltest
