//go:build linux

package main

import (
	"debug/elf"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

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
