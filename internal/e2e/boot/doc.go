// Package boot proves that the kernels of all machines arm the sites of a converted program.
//
// scripts/machines-boot boots Debian's kernels in emulators with internal/testkit/guest as their
// first process. It arms each site by a uprobe, with the place of its semaphore and of its
// arguments as the program's notes have them. The program prints what a tracer has to see;
// the hits of the kernel's trace have to be the same, also in its shared library, in a child,
// and in a program that starts while it is traced. Guards have to be true as long as it is traced, and the code
// has to be as before afterwards.
package boot
