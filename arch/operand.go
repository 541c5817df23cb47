package arch

import (
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// operandPatterns match the operands of a note: SIZE@PLACE, or PLACE, separated by spaces. A place is what the compiler has written for the assembler.
type operandPatterns struct{ operand, size, constant, symbol, paren, bracket, comma, indexed, local *regexp.Regexp }

// operandSyntax are made when they are asked for: other commands have no use for them.
var operandSyntax = sync.OnceValue(func() *operandPatterns {
	return &operandPatterns{
		operand:  regexp.MustCompile(`(?:\[[^\]]*\]|,\s+|\S)+`),
		size:     regexp.MustCompile(`^(-?\d+)(f?)@`),
		constant: regexp.MustCompile(`^[$#i]?(-?(?:0x[0-9a-fA-F]+|\d+))$`),
		// An address, or with a $ in x86 the constant that it is.
		symbol: regexp.MustCompile(`^(\$?)(?:(-?\d+)\+)?([A-Za-z_.][\w.$]*)([+-]\d+)?$`),
		// disp(base,index,scale) of x86; disp(base) of ppc64, riscv64 and s390x.
		paren: regexp.MustCompile(`^(?:(?:(-?\d+)\+)?([A-Za-z_.][\w.$]*)([+-]\d+)?|(-?\d+))?\(([%\w]*)(?:,\s*([%\w]+)(?:,(\d))?)?\)$`),
		// [base, #disp] of arm and arm64, or [base, index, lsl #bits] of a register that is as wide as the base.
		bracket: regexp.MustCompile(`^\[(\w+)(?:,\s*#?(-?\d+)|,\s*([a-vx-z]\w*)(?:,\s*lsl #?([0-4]))?)?\]$`),
		// $base,disp of loong64.
		comma: regexp.MustCompile(`^(\$\w+),\s*(-?\d+)$`),
		// base,index of ppc64, where no register has the number 0.
		indexed: regexp.MustCompile(`^(\d+),(\d+)$`),
		// The thread's part of x86: disp, x@tpoff or x@tpoff+disp, and registers in parentheses.
		local: regexp.MustCompile(`^(?:(?:(-?\d+)\+)?([A-Za-z_.][\w.$]*)@(\w+)([+-]\d+)?|(-?\d+))?(\(.*\))?$`),
	}
})

// OperandReader reads the operands of one file's notes.
type OperandReader struct {
	Threads *ThreadState
	Word    int  // bytes
	Numeric bool // a number is a register
	Address func(symbol string) (uint64, bool)
	// Local returns how far behind the thread pointer a thread-local variable is.
	Local func(symbol string) (uint64, bool)
}

// SplitOperands returns the operands of a note. Those of Arm have spaces behind commas, and in brackets.
func SplitOperands(text string) []string { return operandSyntax().operand.FindAllString(text, -1) }

// Read returns the operands. Those that it cannot read have the size 0, so that the others keep their numbers. An operand without a size is a
// word.
func (r *OperandReader) Read(text string) (operands []Operand) {
	for _, one := range SplitOperands(text) {
		size, place, isFloat := r.Word, one, false
		if match := operandSyntax().size.FindStringSubmatch(one); match != nil {
			size, _ = strconv.Atoi(match[1])
			place, isFloat = one[len(match[0]):], match[2] != ""
		}
		operand, ok := r.place(place)
		operand.Size, operand.Signed, operand.Float = max(size, -size), size < 0 && !isFloat, isFloat
		if !ok || isFloat && operand.Size < 4 || operand.Size > 8 || operand.Size <= 0 || operand.Size&(operand.Size-1) != 0 {
			operand = Operand{Base: -1, Index: -1}
		}
		operands = append(operands, operand)
	}
	return operands
}

// place reads where an operand is.
func (r *OperandReader) place(text string) (o Operand, ok bool) {
	o.Base, o.Index, o.Scale = -1, -1, 1
	if at, ok := r.register(text); ok {
		o.Kind, o.Base = InRegister, at
		return o, true
	}
	if n, ok := r.Threads.Vectors.Number(strings.TrimPrefix(text, "%")); ok {
		o.Kind, o.Base = InVector, n
		return o, true
	}
	if match := operandSyntax().constant.FindStringSubmatch(text); match != nil {
		value, err := strconv.ParseInt(match[1], 0, 64)
		if unsigned, err2 := strconv.ParseUint(match[1], 0, 64); err != nil && err2 == nil {
			value, err = int64(unsigned), nil
		}
		o.Kind, o.Value = Constant, uint64(value)
		return o, err == nil
	}
	o.Kind = InMemory
	if match := operandSyntax().symbol.FindStringSubmatch(text); match != nil {
		address, ok := r.Address(match[3])
		o.Value, o.Address = address+parseDisplacement(match[2])+parseDisplacement(match[4]), true
		if match[1] != "" {
			o.Kind = Constant
		}
		return o, ok
	}
	if match := operandSyntax().paren.FindStringSubmatch(text); match != nil {
		return o, r.memory(&o, match)
	}
	if local, ok := strings.CutPrefix(text, "%"+r.Threads.Segment+":"); ok && r.Threads.Segment != "" {
		return o, r.local(&o, local)
	}
	if match := operandSyntax().bracket.FindStringSubmatch(text); match != nil {
		return o, r.sum(&o, match[1], match[2], match[3], parseDisplacement(match[4]))
	}
	if match := operandSyntax().comma.FindStringSubmatch(text); match != nil {
		return o, r.sum(&o, match[1], match[2], "", 0)
	}
	if match := operandSyntax().indexed.FindStringSubmatch(text); match != nil && r.Numeric {
		if match[1] == "0" {
			return o, r.sum(&o, match[2], "", "", 0)
		}
		return o, r.sum(&o, match[1], "", match[2], 0)
	}
	return r.expression(text)
}

// sum reads memory at a register, a number and another register, which is shifted. Each but the first may be "".
func (r *OperandReader) sum(o *Operand, base, number, index string, shift uint64) (ok bool) {
	o.Base, ok = r.register(base)
	o.Value, o.Scale = parseDisplacement(number), 1<<shift
	if index != "" && ok {
		o.Index, ok = r.register(index)
	}
	return ok
}

// local reads memory of the thread.
func (r *OperandReader) local(o *Operand, text string) (ok bool) {
	match := operandSyntax().local.FindStringSubmatch(text)
	if match == nil || text == "" {
		return false
	}
	before, symbol, offset, behind, number, registers := match[1], match[2], match[3], match[4], match[5], match[6]
	if registers != "" {
		match := operandSyntax().paren.FindStringSubmatch(registers)
		if match == nil || !r.memory(o, match) {
			return false
		}
	}
	o.Thread, o.Value = true, parseDisplacement(number)
	if symbol == "" {
		return true
	}
	value, ok := r.Local(symbol)
	o.Value = value + parseDisplacement(before) + parseDisplacement(behind)
	return ok && offset == r.Threads.Offset
}

// memory reads a symbol or a number, and registers in parentheses.
func (r *OperandReader) memory(o *Operand, match []string) (ok bool) {
	before, symbol, behind, displacement, base, index, scale := match[1], match[2], match[3], match[4], match[5], match[6], match[7]
	o.Value = parseDisplacement(displacement)
	if symbol != "" {
		address, found := r.Address(symbol)
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
func (r *OperandReader) register(name string) (int, bool) {
	if _, err := strconv.Atoi(name); err == nil && !r.Numeric {
		return -1, false
	}
	if at, ok := r.Threads.Registers()[strings.TrimPrefix(name, "%")]; ok {
		return at, true
	}
	return -1, false
}

func parseDisplacement(text string) uint64 {
	value, _ := strconv.ParseInt(text, 0, 64)
	return uint64(value)
}
