//go:build linux

// Command guest is the first process of a booted kernel: it arms the sites of a converted program
// through tracefs, and compares the hits with what the program says of each. It reads notes
// and writes uprobes by itself, for machines that no tracer runs on.
//
// It prints a line for each check, "ok ..." or "FAIL ...", then "end", and turns the machine
// off.
package main

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

const (
	program = "/program"
	library = "/library.so"
	tracing = "/sys/kernel/tracing"
)

func main() {
	defer turnOff()
	if err := mount(); err != nil {
		report(err, "file systems")
		return
	}
	var name syscall.Utsname
	syscall.Uname(&name)
	fmt.Printf("\nkernel %s %s\n", text(name.Release[:]), text(name.Machine[:]))
	if err := trial(); err != nil {
		report(err, "trial")
	}
}

func turnOff() {
	if r := recover(); r != nil {
		fmt.Println("FAIL panic:", r)
	}
	fmt.Println("end")
	time.Sleep(200 * time.Millisecond) // for the console
	syscall.Reboot(syscall.LINUX_REBOOT_CMD_POWER_OFF)
	syscall.Reboot(syscall.LINUX_REBOOT_CMD_RESTART)
}

func mount() error {
	for _, fs := range [][2]string{{"devtmpfs", "/dev"}, {"proc", "/proc"}, {"sysfs", "/sys"}, {"tracefs", tracing}} {
		if err := os.MkdirAll(fs[1], 0o755); err != nil && fs[0] != "tracefs" {
			return err
		}
		if err := syscall.Mount(fs[0], fs[1], fs[0], 0, ""); err != nil {
			return fmt.Errorf("%s: %w", fs[0], err)
		}
	}
	return os.Symlink("/proc/self/fd", "/dev/fd") // for bpftrace
}

// report prints the result of a check.
func report(err error, format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	if err == nil {
		fmt.Println("ok", what)
		return
	}
	fmt.Printf("FAIL %s: %s\n", what, strings.ReplaceAll(err.Error(), "\n", "; "))
}

// text returns a string of utsname, whose elements are signed on some machines.
func text[T int8 | uint8](chars []T) string {
	var b strings.Builder
	for _, c := range chars {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}
