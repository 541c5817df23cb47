module sdtconvert/examples/freebsd-dtrace

go 1.26
