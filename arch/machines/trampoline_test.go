package machines_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
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
