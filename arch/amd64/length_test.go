package amd64

import (
	"bytes"
	"encoding/hex"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/tools"
)

// record is the distance between the instructions of TestVectorLengths: NOPs behind each keep
// the disassembler in step.
const record = 32

// randomVector returns bytes at random that begin as an instruction with a VEX or EVEX prefix. The
// prefix names register 0 as the second source, which those with one source need.
func randomVector(r *rand.Rand) []byte {
	code := make([]byte, 16)
	for i := range code {
		code[i] = byte(r.Uint32())
	}
	pp := byte(r.IntN(4))
	switch r.IntN(3) {
	case 0:
		code[0], code[1] = 0xc5, code[1]&0x80|0x78|pp
	case 1:
		code[0], code[1], code[2] = 0xc4, code[1]&0xe0|byte(1+r.IntN(3)), code[2]&0x84|0x78|pp
	default: // no mask
		code[0], code[1], code[2], code[3] = 0x62, code[1]&0xf0|byte(1+r.IntN(6)), code[2]&0x80|0x7c|pp, code[3]&0x20|8
	}
	return code
}

// disassemble returns the instructions of objdump at each record, without those it does not know.
func disassemble(t *testing.T, code []byte) map[int][]byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "code")
	disk.Write(t, file, string(code))
	found := map[int][]byte{}
	for _, line := range tools.Lines(t, "objdump", "-D", "-w", "-z", "-b", "binary", "-m", "i386:x86-64", "--insn-width=16", file) {
		fields := strings.Split(line, "\t")
		at, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(fields[0]), ":"), 16, 64)
		if err != nil || len(fields) < 3 || at%record != 0 || strings.Contains(fields[2], "(bad)") {
			continue
		}
		b, err := hex.DecodeString(strings.ReplaceAll(strings.TrimSpace(fields[1]), " ", ""))
		if err == nil {
			found[int(at)/record] = b
		}
	}
	return found
}

// TestVectorLengths compares the lengths of instructions with a VEX or EVEX prefix with objdump.
func TestVectorLengths(t *testing.T) {
	t.Parallel()
	tools.Need(t, "objdump")
	r := rand.New(rand.NewPCG(1, 62))
	var all []byte
	var code [][]byte
	for range 8000 {
		c := randomVector(r)
		code = append(code, c)
		all = append(append(all, c...), bytes.Repeat([]byte{0x90}, record-len(c))...)
	}
	known := disassemble(t, all)
	for i, b := range known {
		if !bytes.HasPrefix(code[i], b) {
			t.Fatalf("objdump reads % x, and not % x", b, code[i])
		}
		if n := vexLen(code[i]); n != len(b) {
			t.Errorf("% x: length %d, want %d", code[i], n, len(b))
		}
		for n := range len(b) {
			if got := vexLen(code[i][:n]); got != 0 {
				t.Errorf("% x: length %d of what ends behind %d bytes", code[i], got, n)
			}
		}
	}
	if len(known) < 500 {
		t.Errorf("objdump knows %d of the instructions", len(known))
	}
}
