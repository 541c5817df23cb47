package machines_test

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/arch/arm64"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

var updateTrampolines = flag.Bool("update-trampolines", false, "write what objdump shows of trampolines")

var objdumpLine = regexp.MustCompile(`^ +[0-9a-f]+:\t[0-9a-f ]+\t(.*)$`)

// Trampolines are what objdump shows of them in testdata, which was read by people.
func TestTrampolines(t *testing.T) {
	for _, c := range []struct {
		machine   arch.Machine
		objdump   []string
		registers []string // saved, others
	}{
		{amd64.Machine, []string{"objdump", "-m", "i386:x86-64"}, []string{"rdi", "r12"}},
		{arm64.Machine{}, []string{"aarch64-linux-gnu-objdump", "-m", "aarch64"}, []string{"x3", "x20"}},
	} {
		name := c.machine.Traits().Name
		t.Run(name, func(t *testing.T) {
			tools.Need(t, c.objdump[0])
			jumper := c.machine.(arch.Jumper)
			threads := &c.machine.Traits().Threads
			operand := func(kind arch.OperandKind, size, base, index int, value uint64) arch.Operand {
				return arch.Operand{Kind: kind, Size: size, Base: base, Index: index, Scale: 4, Value: value}
			}
			all := []arch.TracedArgument{
				{Operand: operand(arch.Constant, 4, -1, -1, 0x123456789a), At: 24},
				{Operand: operand(arch.InRegister, 8, threads.Registers()[c.registers[0]], -1, 0), At: 32},
				{Operand: operand(arch.InRegister, 8, threads.Registers()[c.registers[1]], -1, 0), At: 40},
				{Operand: operand(arch.InRegister, 8, threads.SP, -1, 0), At: 48},
				{Operand: operand(arch.InMemory, 4, threads.SP, -1, 16), At: 56},
				{Operand: operand(arch.InMemory, 1, -1, -1, 0x601040), At: 64},
				{Operand: operand(arch.InRegister, 8, threads.Registers()[c.registers[1]], -1, 0), At: 72, Copy: 128, CopyAt: 96},
				{Operand: operand(arch.InMemory, 2, threads.Registers()[c.registers[0]], -1, ^uint64(23)), At: 80, MayFault: true, CopyAt: 232},
			}
			all = append(all, arch.TracedArgument{Operand: operand(arch.InVector, 8, 0, -1, 0), At: 24}, arch.TracedArgument{Operand: operand(arch.InVector, 4, 9, -1, 0), At: 24})
			if name == "amd64" {
				all = append(all, arch.TracedArgument{Operand: operand(arch.InMemory, 8, threads.Registers()["rax"], threads.Registers()["r9"], 1<<40), At: 88, MayFault: true, Copy: 128, CopyAt: 248})
				local := operand(arch.InMemory, 2, threads.Registers()["rdi"], -1, ^uint64(0xff))
				local.Thread = true
				all = append(all, arch.TracedArgument{Operand: local, At: 96, MayFault: true, CopyAt: 384})
			} else {
				all = append(all, arch.TracedArgument{Operand: operand(arch.InMemory, 8, threads.Registers()["x0"], threads.Registers()["x20"], 0), At: 88, MayFault: true, CopyAt: 248})
			}
			ring := arch.Ring{Address: 0x7f0000200000, Count: 4, Stride: 64 + 1024*256, Slots: 1024, Size: 256}
			var b strings.Builder
			show := func(title string, at uint64, code []byte) {
				path := filepath.Join(t.TempDir(), "code")
				expect.OK(t, os.WriteFile(path, code, 0o666))
				args := append(append([]string{}, c.objdump[1:]...), "-D", "-b", "binary", "-w", "--adjust-vma", fmt.Sprintf("%#x", at), path)
				b.WriteString(title + "\n")
				for line := range strings.Lines(tools.Output(t, c.objdump[0], args...)) {
					if match := objdumpLine.FindStringSubmatch(strings.TrimSuffix(line, "\n")); match != nil {
						b.WriteString("\t" + strings.TrimRight(match[1], " ") + "\n")
					}
				}
			}
			const at = 0x400000
			base := arch.Trampoline{Address: at, Resume: at + 0x1234, Site: 7, Ring: ring, Dropped: 0x7f0000300038, Alive: 0x7f0000300040, ThreadID: at - 0x1000}
			events, counts, single, filtered := base, base, base, base
			for i, comparison := range []arch.Comparison{arch.Equal, arch.NotEqual, arch.Less, arch.LessOrEqual, arch.Greater, arch.GreaterOrEqual, arch.Less} {
				o := operand(arch.InRegister, 1<<(i%4), threads.Registers()[c.registers[1]], -1, 0)
				o.Signed = i%2 > 0
				filtered.Conditions = append(filtered.Conditions, arch.Condition{Operand: o, Comparison: comparison, Number: uint64(i)})
			}
			filtered.Conditions = append(filtered.Conditions, arch.Condition{Operand: operand(arch.InMemory, 4, threads.SP, -1, 16), Number: 1 << 40})
			filtered.Rejected = 0x7f0000600000
			events.Arguments = all
			counts.Counters, counts.Resume = 0x7f0000400000, 0
			single.Ring.Count = 1
			show("events", at, jumper.Trampoline(&events))
			show("counts, at a return", at, jumper.Trampoline(&counts))
			bins, linear := base, base
			bins.Counters, bins.Ring.Stride = 0x7f0000400000, 8192
			linear.Counters, linear.Ring.Stride = bins.Counters, bins.Ring.Stride
			bins.Bins = &arch.Bins{MayFault: true, Operand: operand(arch.InMemory, 8, threads.Registers()[c.registers[0]], -1, 8)}
			signed := operand(arch.InRegister, 4, threads.Registers()[c.registers[1]], -1, 0)
			signed.Signed = true
			linear.Bins = &arch.Bins{Ranges: arch.Ranges{Low: -10, High: 100, Width: 7}, Operand: signed}
			linear.Conditions, linear.Rejected = filtered.Conditions[:1], filtered.Rejected
			show("powers of two", at, jumper.Trampoline(&bins))
			show("ranges of one width", at, jumper.Trampoline(&linear))
			show("conditions", at, jumper.Trampoline(&filtered))
			show("one ring", at, jumper.Trampoline(&single))
			show("jump", at, jumper.Jump(at, at+0x1234))
			if jump := jumper.FarJump(0x7f0000300038); jump != nil {
				show("far jump", at, jump)
			}
			if stub := jumper.CallStub(at, at+0x400); stub != nil {
				show("call", at, stub)
			}
			show("handler of SIGTRAP", at, jumper.TrapHandler(0x7f0000500000))
			golden := tools.Root("arch", name, "testdata", "trampoline.txt")
			if *updateTrampolines {
				expect.OK(t, os.WriteFile(golden, []byte(b.String()), 0o666))
			}
			expect.Equal(t, string(disk.Read(t, golden)), b.String())
		})
	}
}

// binsProgram calls trampolines with values, and prints which counter each has counted up.
const binsProgram = `
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
struct code { const unsigned char *bytes; unsigned size; };
static const struct code codes[] = { CODES };
static const uint64_t values[] = { VALUES };
int main(void)
{
	unsigned char *at = mmap((void *)ADDRESS, 1 << 16, PROT_READ|PROT_WRITE|PROT_EXEC, MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED, -1, 0);
	uint64_t *counters = mmap((void *)COUNTERS, 1 << 16, PROT_READ|PROT_WRITE, MAP_PRIVATE|MAP_ANONYMOUS|MAP_FIXED, -1, 0);
	if (at != (void *)ADDRESS || counters != (void *)COUNTERS)
		return 2;
	counters[(1 << 13) - 1] = 1; /* the tracer lives */
	for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		memcpy(at, codes[i].bytes, codes[i].size);
		__builtin___clear_cache((char *)at, (char *)at + codes[i].size);
		for (unsigned k = 0; k < sizeof(values) / sizeof(values[0]); k++) {
			((void (*)(uint64_t))at)(values[k]);
			for (int n = 0; n < 1100; n++)
				for (; counters[n] > 0; counters[n]--)
					printf("%d ", n);
		}
		printf("\n");
	}
	return 0;
}
`

// Trampolines count in the range that holds the value, of all sizes and signs.
func TestBins(t *testing.T) {
	const address, counters = 0x10000000, 0x20000000
	ranges := []arch.Ranges{
		{}, {Low: 0, High: 100, Width: 10}, {Low: -5, High: 6, Width: 4}, {Low: 3, High: 4, Width: 1}, {Low: -300, High: -100, Width: 7},
		{Low: math.MinInt64, High: math.MaxInt64, Width: 1 << 60}, {Low: 1, High: math.MaxInt64, Width: math.MaxInt64}, {Low: 0, High: 1000, Width: 1},
	}
	r := rand.New(rand.NewPCG(3, 3))
	var values []uint64
	for _, bounds := range ranges {
		for _, bound := range []int64{bounds.Low, bounds.High, bounds.Low + bounds.Width, bounds.Low + 2*bounds.Width} {
			values = append(values, uint64(bound-1), uint64(bound), uint64(bound+1))
		}
	}
	for i := range 64 {
		values = append(values, r.Uint64()>>i, 1<<i, 1<<i-1, -(1 << i))
	}
	var bins []arch.Bins
	for _, one := range ranges {
		for size := range 4 {
			for _, signed := range []bool{false, true} {
				bins = append(bins, arch.Bins{Ranges: one, Operand: arch.Operand{Kind: arch.InRegister, Size: 1 << size, Signed: signed, Index: -1}})
			}
		}
	}
	bins = append(bins, arch.Bins{}) // of an argument that cannot be read
	for _, c := range []struct {
		machine  arch.Machine
		register string
		compiler string
		run      []string
	}{
		{amd64.Machine, "rdi", "gcc", nil},
		{arm64.Machine{}, "x0", "aarch64-linux-gnu-gcc", []string{"qemu-aarch64-static"}},
	} {
		t.Run(c.machine.Traits().Name, func(t *testing.T) {
			tools.Need(t, append(c.run, c.compiler)...)
			var arrays, codes, numbers strings.Builder
			for i, b := range bins {
				b.Base = c.machine.Traits().Threads.Registers()[c.register]
				code := c.machine.(arch.Jumper).Trampoline(&arch.Trampoline{
					Address: address, Counters: counters, Alive: counters + 1<<16 - 8, Bins: &b, Ring: arch.Ring{Count: 1, Stride: 1 << 14},
				})
				fmt.Fprintf(&arrays, "static const unsigned char code%d[] = {", i)
				for _, one := range code {
					fmt.Fprintf(&arrays, "%d,", one)
				}
				fmt.Fprintf(&arrays, "};\n")
				fmt.Fprintf(&codes, "{code%d, %d},", i, len(code))
			}
			for _, value := range values {
				fmt.Fprintf(&numbers, "%#xu,", value)
			}
			text := strings.NewReplacer("CODES", codes.String(), "VALUES", numbers.String(), "ADDRESS", fmt.Sprint(address), "COUNTERS", fmt.Sprint(counters)).Replace(binsProgram)
			path := filepath.Join(t.TempDir(), "bins")
			expect.OK(t, os.WriteFile(path+".c", []byte(arrays.String()+text), 0o666))
			tools.Must(t, c.compiler, "-static", "-O1", "-o", path, path+".c")
			run := append(c.run, path)
			lines := strings.Split(strings.TrimSpace(tools.Output(t, run[0], run[1:]...)), "\n")
			expect.Equal(t, len(bins), len(lines))
			for i, b := range bins {
				got := strings.Fields(lines[i])
				expect.Equal(t, len(values), len(got), "%+v", b)
				for k, value := range values {
					want := b.Unread()
					if shift := 64 - 8*b.Size; b.Size > 0 && b.Signed {
						want = b.Of(uint64(int64(value<<shift)>>shift), true)
					} else if b.Size > 0 {
						want = b.Of(value<<shift>>shift, false)
					}
					if got[k] != strconv.Itoa(want) {
						t.Fatalf("%#x in %+v: counter %s, want %d", value, b, got[k], want)
					}
				}
			}
		})
	}
}
