package parallel

import "golang.org/x/sys/unix"

// useHugePages asks the kernel for huge pages. It need not give any.
func useHugePages(b []byte) { _ = unix.Madvise(b, unix.MADV_HUGEPAGE) }
