package arm

import (
	"fmt"
	"io"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sdtconvert/internal/listing"
	"sdtconvert/internal/sites"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
	"sdtconvert/internal/trace/events"
	"sdtconvert/internal/trace/inject"
	"sdtconvert/internal/trace/probe"
	"sdtconvert/internal/trace/ptrace"
	"sdtconvert/linkerset"
)

// steps is a program with sites of five bytes and of one byte, before code of all kinds, whose texts and memory are there or not.
const steps = `
#include <signal.h>
#include <stdlib.h>
#define NOTE(bytes, name, args, ...) __asm__ volatile ("990:\t.byte " bytes "\n" \
	".pushsection .note.stapsdt,\"?\",\"note\"\n.balign 4\n.4byte 992f-991f,994f-993f,3\n991:\t.asciz \"stapsdt\"\n992:\t.balign 4\n" \
	"993:\t.8byte 990b,_.stapsdt.base,0\n.asciz \"step\"\n.asciz \"" name "\"\n.asciz \"" args "\"\n994:\t.balign 4\n.popsection\n" \
	".ifndef _.stapsdt.base\n.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n.weak _.stapsdt.base\n" \
	".hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base,1\n.popsection\n.endif\n" :: __VA_ARGS__)
#define LONG "0x90,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0"
#define SHORT "0x90"
static long there[4] = { 11, 22, 33, 44 };
int main(int argc, char **argv)
{
	long rounds = atol(argv[1]);
	static const char text[] = "tea and milk";
	volatile signed char flags = 0;
	long sum = 0;
	raise(SIGSTOP);
	for (long i = 0; i < rounds; i++) {
		flags += (signed char)(i * 37); /* overflows, carries, zeros */
		NOTE(LONG, "plain", "-8@%0 -1@%1 -8@%2", "r" (i), "q" (flags), "r" (sum));
		sum += i;
		const char *t = i % 3 == 0 ? text : i % 3 == 1 ? (const char *)0 : (const char *)0x123456000;
		NOTE(LONG, "text", "-8@%0 8@%1", "r" (i), "r" (t));
		const long *p = i % 2 ? &there[i % 4] : (const long *)0x123456000;
		NOTE(LONG, "memory", "-8@%0 -8@(%1)", "r" (i), "r" (p));
		NOTE(LONG, "float", "-8@%0 8f@%1", "r" (i), "x" ((double)i));
		NOTE(SHORT, "one", "-8@%0", "r" (i));
		NOTE("0x90,0xe9,3,0,0,0,0xcc,0xcc,0xcc", "jump", "-8@%0", "r" (i));
		NOTE("0x90,0xe8,3,0,0,0,0xeb,5,0xcc,0x48,0x85,0xc0,0xc3", "call", "-8@%0", "a" (i));
		__asm__ volatile ("add $5, %0\n\tjno 1f\n\tnop\n1:" : "+r" (sum) :: "cc");
	}
	return sum == rounds * (rounds - 1) / 2 + rounds * 5 ? 0 : 9;
}
`

// recorded takes the events of a run.
type recorded []string

func (r *recorded) Event(e *events.Event, _ *events.Clock) bool {
	text := e.Name
	for i, value := range e.Values {
		switch {
		case e.Texts[i].Lost:
			text += " lost"
		case e.Arguments[i].Format == probe.Text && e.Texts[i].Unreadable:
			text += " unreadable"
		case e.Arguments[i].Format == probe.Text:
			text += fmt.Sprintf(" %q", e.Texts[i].Text)
		default:
			text += fmt.Sprintf(" %d", int64(value))
		}
	}
	*r = append(*r, text)
	return true
}

func (r *recorded) Close() error { return nil }

// A thread can leave a trampoline at each instruction: it has the registers and flags that it had at the site, goes on behind it, and the hit
// is recorded once.
func TestLeaveAtEachInstruction(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the sites are of amd64")
	}
	tools.Need(t, "gcc")
	path := filepath.Join(t.TempDir(), "steps")
	expect.OK(t, os.WriteFile(path+".c", []byte(steps), 0o666))
	tools.Must(t, "gcc", "-O1", "-o", path, path+".c")
	for _, mode := range []string{"events", "counts", "filter", "powers", "ranges"} {
		t.Run(mode, func(t *testing.T) {
			done := make(chan struct{})
			go func() { // the thread ends with the goroutine
				defer close(done)
				runtime.LockOSThread()
				stepThrough(t, path, mode)
			}()
			<-done
		})
	}
}

func stepThrough(t *testing.T, path, mode string) {
	rounds := 700
	if testing.Short() {
		rounds = 250
	}
	cmd := exec.Command(path, strconv.Itoa(rounds))
	expect.OK(t, cmd.Start())
	defer cmd.Process.Kill()
	pid := cmd.Process.Pid
	for begun := time.Now(); !strings.HasPrefix(ptrace.Status(pid, "State"), "T"); time.Sleep(time.Millisecond) {
		if time.Since(begun) > 10*time.Second {
			t.Fatal("the program does not stop")
		}
	}
	if err := ptrace.Seize(pid); err != nil {
		tools.Unavailable(t, fmt.Sprint("ptrace: ", err))
		return
	}
	process := ptrace.New(pid)
	process.Add(pid, false)
	process.Handle, process.Warn = func(ptrace.Change) {}, func(err error) { t.Error(err) }
	expect.OK(t, process.Open())
	sink := &recorded{}
	var drawn strings.Builder
	session := &Session{Life: expect.Value(inject.NewLife())(t), Warn: func(err error) { t.Error(err) }}
	layout := expect.Value(linkerset.ParseLayout(linkerset.Pairs.String(), ""))(t)
	session.Listing = listing.Options{Conventions: sites.Conventions{Layouts: layout.All()}}
	session.Declarations = probe.Declarations{"step:text": {{Type: "long"}, {Type: "char *"}}}
	if mode == "filter" || mode == "ranges" {
		session.Filter = expect.Value(events.ParseFilter("arg0 >= 100"))(t)
	}
	session.Collector = &events.Collector{Sites: session.Sites, Clock: events.NewClock(), Filter: session.Filter}
	switch mode {
	case "events", "filter":
		session.Collector.Sink = sink
	case "counts":
		session.Collector.Sink = &events.CountSink{W: &drawn}
	case "powers", "ranges":
		session.Collector.Sink = histogram(t, mode, &drawn)
	}
	a := New(session, process)
	found := expect.Value(a.Look())(t)
	expect.Equal(t, 7, len(found))
	expect.Equal(t, true, process.Stop())
	expect.OK(t, a.Arm(found))
	unix.Kill(pid, unix.SIGCONT)

	state := &a.traits.Threads
	var atSite []byte
	inside, leaveAfter, left := 0, 0, 0
	r := rand.New(rand.NewPCG(1, 1))
	movedLeft := map[uint64]bool{} // steps in moved instructions, and where they were left
	for status := unix.WaitStatus(0); ; {
		expect.OK(t, unix.PtraceSingleStep(pid))
		if _, err := unix.Wait4(pid, &status, unix.WALL, nil); err != nil || !status.Stopped() {
			break
		}
		process.Threads[pid].Stopped = true
		sig := status.StopSignal()
		data, err := a.Registers(pid, state.Size)
		expect.OK(t, err)
		pc := state.Get(data, state.PC, 8, a.order)
		if sig == unix.SIGSEGV {
			if a.Signal(pid, sig) {
				t.Fatalf("a fault at %#x is the program's", pc)
			}
			continue
		}
		if slices.ContainsFunc(a.armed, func(s *armedSite) bool { return s.at == pc && s.new[0] == 0xe9 }) {
			atSite, inside = slices.Clone(data), 0
		}
		if p := a.placeOf(data); p != nil && p.moved != nil {
			if r.IntN(3) == 0 {
				a.leave(pid)
				after, err := a.Registers(pid, state.Size)
				expect.OK(t, err)
				movedLeft[pc-p.code] = true
				if now := state.Get(after, state.PC, 8, a.order); now != p.from && now != p.from+uint64(p.moved.Length) {
					t.Fatalf("the thread is at %#x, and not before or behind %#x", now, p.from)
				}
			}
		} else if p != nil && atSite != nil {
			if inside++; inside == leaveAfter+1 {
				leaveAfter, left = leaveAfter+1, left+1
				a.leave(pid)
				after, err := a.Registers(pid, state.Size)
				expect.OK(t, err)
				compareRegisters(t, a, atSite, after, p)
			}
		} else if atSite != nil && inside > 0 {
			if inside < leaveAfter {
				leaveAfter = 0 // the longest trampoline has been left everywhere
			}
			atSite = nil
		}
		if a.IsFaulting() {
			t.Fatal("a site has no stack")
		}
	}
	session.Collector.Release(slices.Collect(maps.Values(a.rings)), a.tables)
	expect.OK(t, session.Collector.Close())
	expect.Equal(t, [2]uint64{}, [2]uint64{session.Collector.Abandoned, session.Collector.Damaged}, "events without an end")
	if len(movedLeft) < 4 {
		t.Errorf("moved instructions were left at %d places", len(movedLeft))
	}
	if left < 500 {
		t.Errorf("trampolines were left %d times", left)
	}
	for _, s := range session.Sites() {
		hits, dropped := session.Collector.Totals(s.Number)
		expect.Equal(t, [2]uint64{uint64(rounds), 0}, [2]uint64{hits, dropped}, "%s", s.Text)
	}
	switch mode {
	case "counts":
		expect.Equal(t, 7, strings.Count(drawn.String(), fmt.Sprintf("%12d step:", rounds)), "%s", &drawn)
		return
	case "powers", "ranges":
		checkDrawn(t, drawn.String(), mode, rounds)
		return
	}
	var want []string
	sum, flags := 0, int8(0)
	for i := range rounds {
		flags += int8(i * 37)
		if mode == "events" || i >= 100 {
			pointed := "lost"
			if i%2 == 1 {
				pointed = fmt.Sprint((i%4 + 1) * 11)
			}
			want = append(want, fmt.Sprintf("plain %d %d %d", i, flags, sum), fmt.Sprintf("text %d %s", i, []string{`"tea and milk"`, "unreadable", "unreadable"}[i%3]),
				fmt.Sprintf("memory %d %s", i, pointed), fmt.Sprintf("float %d %d", i, int64(math.Float64bits(float64(i)))), fmt.Sprintf("one %d", i), fmt.Sprintf("jump %d", i), fmt.Sprintf("call %d", i))
		}
		sum += i + 5
	}
	expect.Equal(t, want, *sink)
}

// histogram returns a sink that has trampolines count by an argument: one that is there, and one in memory that is not always.
func histogram(t *testing.T, mode string, w io.Writer) events.Sink {
	name, value := "lhist", "arg0,100,200,30"
	if mode == "powers" {
		name, value = "hist", "arg1"
	}
	return expect.Value((&events.Summary{Name: name, Value: value}).NewSink(w))(t)
}

// checkDrawn compares histograms with what the program has passed.
func checkDrawn(t *testing.T, drawn, mode string, rounds int) {
	t.Helper()
	odd := rounds / 2
	if mode == "powers" {
		_, drawn, _ = strings.Cut(drawn, ":memory arg1\n") // 22 and 44 in odd rounds, nothing in others
		expect.Equal(t, 2, strings.Count(drawn, "|\n")-strings.Count(drawn[strings.Index(drawn, "not counted"):], "|\n"))
		expect.Contains(t, drawn, fmt.Sprintf("[16, 32) %10d |", (odd+1)/2))
		expect.Contains(t, drawn, fmt.Sprintf("[32, 64) %10d |", odd/2))
		expect.Contains(t, drawn, fmt.Sprintf("not counted: %d hits that were made with an argument that could not be read", rounds-odd))
		return
	}
	for _, name := range []string{"plain", "text", "memory", "one", "jump", "call"} {
		_, one, _ := strings.Cut(drawn, ":"+name+" arg0\n")
		one, _, _ = strings.Cut(one, "arg0")
		for bounds, want := range map[string]int{"[100, 130)": 30, "[190, 200)": 10, "[200, ...)": rounds - 200} {
			expect.Contains(t, one, fmt.Sprintf("%s %10d |", bounds, want))
		}
	}
}

// compareRegisters compares the registers that a thread has after a trampoline with those at the site.
func compareRegisters(t *testing.T, a *Armer, before, after []byte, p *place) {
	t.Helper()
	state := &a.traits.Threads
	expect.Equal(t, p.trampoline.Resume, state.Get(after, state.PC, 8, a.order))
	const flagsAt, statusFlags = 18 * 8, 0x8d5
	for at := 0; at < 15*8; at += 8 {
		expect.Equal(t, state.Get(before, at, 8, a.order), state.Get(after, at, 8, a.order), "the register at %d", at)
	}
	expect.Equal(t, state.Get(before, state.SP, 8, a.order), state.Get(after, state.SP, 8, a.order), "the stack pointer")
	expect.Equal(t, state.Get(before, flagsAt, 8, a.order)&statusFlags, state.Get(after, flagsAt, 8, a.order)&statusFlags, "the flags")
}
