// Package kernel holds a test on the modules of a real Linux kernel.
package kernel
