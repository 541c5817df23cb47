package trace

import (
	"regexp"
	"strconv"
	"strings"
	"sync"

	"sdtconvert/arch"
)

// operandPatterns match the operands of a note: SIZE@PLACE, separated by spaces. A place is what the compiler has written for the assembler.
type operandPatterns struct{ operand, constant, symbol, paren, bracket, comma *regexp.Regexp }

// patterns are made when they are asked for: other commands have no use for them.
var patterns = sync.OnceValue(func() *operandPatterns {
	return &operandPatterns{
		operand:  regexp.MustCompile(`(-?\d+)f?@((?:,\s+|[^\s@])+)`),
		constant: regexp.MustCompile(`^[$#i]?(-?(?:0x[0-9a-fA-F]+|\d+))$`),
		// An address, or with a $ in x86 the constant that it is.
		symbol: regexp.MustCompile(`^(\$?)(?:(-?\d+)\+)?([A-Za-z_.][\w.$]*)([+-]\d+)?$`),
		// disp(base,index,scale) of x86; disp(base) of ppc64, riscv64 and s390x.
		paren: regexp.MustCompile(`^(?:(?:(-?\d+)\+)?([A-Za-z_.][\w.$]*)([+-]\d+)?|(-?\d+))?\(([%\w]*)(?:,\s*([%\w]+)(?:,(\d))?)?\)$`),
		// [base, #disp] of arm and arm64.
		bracket: regexp.MustCompile(`^\[(\w+)(?:,\s*#?(-?\d+))?\]$`),
		// $base,disp of loong64.
		comma: regexp.MustCompile(`^(\$\w+),\s*(-?\d+)$`),
	}
})

// operandReader reads the operands of one module's notes.
type operandReader struct {
	threads *arch.ThreadState
	numeric bool // a number is a register
	address func(symbol string) (uint64, bool)
}

// read returns the operands. Those that it cannot read have the size 0, so that the others keep their numbers.
func (r *operandReader) read(text string) (operands []arch.Operand) {
	for _, match := range patterns().operand.FindAllStringSubmatch(text, -1) {
		size, _ := strconv.Atoi(match[1])
		operand, ok := r.place(match[2])
		operand.Size, operand.Signed = max(size, -size), size < 0
		if !ok || operand.Size > 8 || operand.Size&(operand.Size-1) != 0 || strings.Contains(match[0], "f@") {
			operand = arch.Operand{Base: -1, Index: -1}
		}
		operands = append(operands, operand)
	}
	return operands
}

// place reads where an operand is.
func (r *operandReader) place(text string) (o arch.Operand, ok bool) {
	o.Base, o.Index, o.Scale = -1, -1, 1
	if at, ok := r.register(text); ok {
		o.Kind, o.Base = arch.InRegister, at
		return o, true
	}
	if match := patterns().constant.FindStringSubmatch(text); match != nil {
		value, err := strconv.ParseInt(match[1], 0, 64)
		if unsigned, err2 := strconv.ParseUint(match[1], 0, 64); err != nil && err2 == nil {
			value, err = int64(unsigned), nil
		}
		o.Kind, o.Value = arch.Constant, uint64(value)
		return o, err == nil
	}
	o.Kind = arch.InMemory
	if match := patterns().symbol.FindStringSubmatch(text); match != nil {
		address, ok := r.address(match[3])
		o.Value, o.Address = address+parseDisplacement(match[2])+parseDisplacement(match[4]), true
		if match[1] != "" {
			o.Kind = arch.Constant
		}
		return o, ok
	}
	if match := patterns().paren.FindStringSubmatch(text); match != nil {
		return o, r.memory(&o, match)
	}
	match := patterns().bracket.FindStringSubmatch(text)
	if match == nil {
		match = patterns().comma.FindStringSubmatch(text)
	}
	if match == nil {
		return o, false
	}
	o.Base, ok = r.register(match[1])
	o.Value = parseDisplacement(match[2])
	return o, ok
}

// memory reads a symbol or a number, and registers in parentheses.
func (r *operandReader) memory(o *arch.Operand, match []string) (ok bool) {
	before, symbol, behind, displacement, base, index, scale := match[1], match[2], match[3], match[4], match[5], match[6], match[7]
	o.Value = parseDisplacement(displacement)
	if symbol != "" {
		address, found := r.address(symbol)
		if !found || strings.TrimPrefix(base, "%") != "rip" || index != "" {
			return false
		}
		o.Value, o.Address = address+parseDisplacement(before)+parseDisplacement(behind), true
		return true
	}
	if base != "" {
		if o.Base, ok = r.register(base); !ok {
			return false
		}
	}
	if index != "" {
		if o.Index, ok = r.register(index); !ok {
			return false
		}
		if scale != "" {
			o.Scale = parseDisplacement(scale)
		}
	}
	return base != "" || index != ""
}

// register returns the offset of a register.
func (r *operandReader) register(name string) (int, bool) {
	if _, err := strconv.Atoi(name); err == nil && !r.numeric {
		return -1, false
	}
	if at, ok := r.threads.Registers()[strings.TrimPrefix(name, "%")]; ok {
		return at, true
	}
	return -1, false
}

func parseDisplacement(text string) uint64 {
	value, _ := strconv.ParseInt(text, 0, 64)
	return uint64(value)
}

// extend returns the value of an operand of a size, of which raw holds the lowest bytes.
func extend(raw uint64, size int, signed bool) uint64 {
	shift := 64 - 8*uint(size)
	if signed {
		return uint64(int64(raw<<shift) >> shift)
	}
	return raw << shift >> shift
}
