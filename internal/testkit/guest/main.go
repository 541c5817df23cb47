//go:build linux

// Command guest is the first process of a booted kernel: it arms the sites of a converted program
// through tracefs, and compares the hits with what the program says of each. It reads notes
// and writes uprobes by itself, for machines that no tracer runs on.
//
// It prints a line for each check, "ok ..." or "FAIL ...", then "end", and turns the machine
// off.
package main

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"regexp"
	"strconv"
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

// places are how operands of each machine are written that are in memory: the submatches
// are an offset, in which it may lack, and a register, in the order of a note.
var places = map[elf.Machine]*regexp.Regexp{
	elf.EM_386:       regexp.MustCompile(`^(-?\d*)\(%(\w+)\)$`),
	elf.EM_X86_64:    regexp.MustCompile(`^(-?\d*)\(%(\w+)\)$`),
	elf.EM_ARM:       regexp.MustCompile(`^\[(\w+)(?:, #(-?\d+))?\]$`),
	elf.EM_AARCH64:   regexp.MustCompile(`^\[(\w+)(?:, ?(-?\d+))?\]$`),
	elf.EM_LOONGARCH: regexp.MustCompile(`^(\$r\d+),(-?\d+)$`),
	elf.EM_PPC64:     regexp.MustCompile(`^(-?\d*)\((\d+)\)$`),
	elf.EM_RISCV:     regexp.MustCompile(`^(-?\d*)\((\w+)\)$`),
	elf.EM_S390:      regexp.MustCompile(`^(-?\d*)\((%r\d+)\)$`),
}

// fetch writes an operand of a note as the kernel reads an argument of a uprobe
// (Documentation/trace/uprobetracer.rst).
func fetch(m elf.Machine, operand string) (string, error) {
	size, place, ok := strings.Cut(operand, "@")
	bits, err := strconv.Atoi(size)
	if !ok || err != nil {
		return "", fmt.Errorf("operand %q", operand)
	}
	kind := fmt.Sprintf(":u%d", 8*bits)
	if bits < 0 {
		kind = fmt.Sprintf(":s%d", -8*bits)
	}
	if match := places[m].FindStringSubmatch(place); match != nil {
		offset, base := match[1], match[2]
		if _, err := strconv.Atoi(offset); err != nil && offset != "" {
			offset, base = base, offset
		}
		if offset == "" {
			offset = "0"
		}
		return signed(offset) + "(" + register(m, base) + ")" + kind, nil
	}
	if constant, ok := constantOf(m, place); ok {
		return `\` + constant + kind, nil
	}
	return register(m, place) + kind, nil
}

func signed(offset string) string {
	if strings.HasPrefix(offset, "-") {
		return offset
	}
	return "+" + offset
}

// constantOf returns a number that is an operand by itself.
func constantOf(m elf.Machine, place string) (string, bool) {
	switch m {
	case elf.EM_386, elf.EM_X86_64:
		number, ok := strings.CutPrefix(place, "$")
		return number, ok
	case elf.EM_PPC64:
		number, ok := strings.CutPrefix(place, "i")
		return number, ok
	case elf.EM_ARM:
		if number, ok := strings.CutPrefix(place, "#"); ok {
			return number, true
		}
	}
	_, err := strconv.ParseInt(place, 0, 64)
	return place, err == nil
}

// x86Name matches the parts of the name of a register of x86 that the kernel leaves out.
var x86Name = regexp.MustCompile(`^[re]?([a-ds][xpi])l?$|^([abcd])l$|^(r\d+)[bwd]?$|^([sdb][ip])l$`)

// register is what the kernel calls a register.
func register(m elf.Machine, name string) string {
	name = strings.TrimLeft(name, "%$")
	switch m {
	case elf.EM_386, elf.EM_X86_64:
		match := x86Name.FindStringSubmatch(name)
		switch {
		case match == nil:
			return "%" + name
		case match[2] != "":
			return "%" + match[2] + "x"
		}
		return "%" + match[1] + match[3] + match[4]
	case elf.EM_AARCH64:
		return "%" + strings.Replace(name, "w", "x", 1)
	case elf.EM_PPC64:
		return "%gpr" + name
	}
	return "%" + name
}

// site is what a note says of one site.
type site struct {
	probe     string // PROVIDER:NAME
	file      string
	address   uint64 // as the file has it
	offset    uint64 // in the file
	semaphore uint64 // its offset in the file, 0 of a probe without one
	operands  []string
}

// operand matches an operand of a note, which may have blanks in brackets.
var operand = regexp.MustCompile(`-?\d+@(?:\[[^\]]*\]|\S+)`)

// readNotes reads the notes of a file.
func readNotes(path string) ([]site, elf.Machine, error) {
	f, err := elf.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	sites, err := notesOf(f)
	for i := range sites {
		sites[i].file = path
	}
	return sites, f.Machine, err
}

func notesOf(f *elf.File) ([]site, error) {
	section := f.Section(".note.stapsdt")
	if section == nil {
		return nil, fmt.Errorf("no .note.stapsdt")
	}
	data, err := section.Data()
	if err != nil {
		return nil, err
	}
	word := 8
	if f.Class == elf.ELFCLASS32 {
		word = 4
	}
	number := func(b []byte) uint64 {
		if word == 4 {
			return uint64(f.ByteOrder.Uint32(b))
		}
		return f.ByteOrder.Uint64(b)
	}
	var sites []site
	for len(data) >= 12 {
		name, desc := int(f.ByteOrder.Uint32(data)), int(f.ByteOrder.Uint32(data[4:]))
		from := 12 + (name+3)&^3
		body := data[from : from+desc]
		data = data[from+(desc+3)&^3:]
		strs := bytes.Split(body[3*word:], []byte{0})
		s := site{
			probe:    string(strs[0]) + ":" + string(strs[1]),
			address:  number(body),
			operands: operand.FindAllString(string(strs[2]), -1),
		}
		var err error
		if s.offset, err = fileOffset(f, s.address); err != nil {
			return nil, err
		}
		if at := number(body[2*word:]); at != 0 {
			if s.semaphore, err = fileOffset(f, at); err != nil {
				return nil, err
			}
		}
		sites = append(sites, s)
	}
	return sites, nil
}

func fileOffset(f *elf.File, address uint64) (uint64, error) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD && address >= p.Vaddr && address < p.Vaddr+p.Filesz {
			return address - p.Vaddr + p.Off, nil
		}
	}
	return 0, fmt.Errorf("%#x is not in the file", address)
}
