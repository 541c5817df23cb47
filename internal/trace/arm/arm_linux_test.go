package arm

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"sdtconvert/arch"
	"sdtconvert/arch/amd64"
	"sdtconvert/image"
	"sdtconvert/internal/listing"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/trace/events"
	"sdtconvert/internal/trace/inject"
	"sdtconvert/internal/trace/probe"
)

// forms are sites of amd64 and the code behind them: of sdt.h, of calls with and without notes, of SystemTap's header before a move and before a
// return, and of a tail call.
var forms = []struct {
	form arch.Form
	code []byte // of the site
	next []byte
}{
	{arch.Nop, []byte{0x90, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0}, []byte{0x89, 0xd8}},
	{arch.Call, []byte{0x90, 0x0f, 0x1f, 0x40, 0}, []byte{0x31, 0xc0}},
	{arch.Call, []byte{0x0f, 0x1f, 0x44, 0, 0}, []byte{0x31, 0xc0}},
	{arch.Nop, []byte{0x90}, []byte{0x48, 0x8b, 0x44, 0x24, 0x08}},
	{arch.Nop, []byte{0x90}, []byte{0xe9, 0x10, 0x20, 0x30, 0x40}},
	{arch.Nop, []byte{0x90}, []byte{0xc3, 0x66, 0x90, 0x66, 0x90}},
	{arch.Nop, []byte{0x90}, []byte{0x49, 0x83, 0x3e, 0x00, 0x74, 0x17}},
	{arch.Nop, []byte{0x90}, []byte{0xe8, 0x10, 0x20, 0x30, 0x00}},
	{arch.Tail, []byte{0xc3, 0x0f, 0x1f, 0x40, 0}, nil},
}

// world is a fake process with sites, and the tracer that it has.
type world struct {
	t        *testing.T
	r        *rand.Rand
	process  *fakeProcess
	armer    *Armer
	session  *Session
	sites    []*probe.Site // of the file
	original []byte
	warnings []string
	names    map[uint64]bool // armed
}

const (
	textAt      = 0x555555550000
	dataAt      = 0x555555560000
	semaphoreAt = dataAt + 16
)

func newWorld(t *testing.T, r *rand.Rand) *world {
	w := &world{t: t, r: r, process: newFake(100, 100, 101)}
	w.process.mapPages(textAt, 2*page, imageMapping("/program", true))
	w.process.mapPages(dataAt, page, imageMapping("/program", false))
	w.process.mapPages(0x7ffff7fc0000, page, imageMapping("[vdso]", true))
	for range 2 * page {
		w.original = append(w.original, byte(r.Uint32()))
	}
	for at := 16; at < 2*page-64; at += 24 + r.IntN(40) {
		f := forms[r.IntN(len(forms))]
		copy(w.original[at:], f.code)
		copy(w.original[at+len(f.code):], f.next)
		s := &probe.Site{Probe: listing.Probe{Provider: "fake", Name: fmt.Sprint(at)}, Kind: arch.Probe, Address: textAt + uint64(at), Form: arch.Site{Form: f.form, Code: f.code}}
		s.Original = slices.Clone(w.original[at : at+16])
		if r.IntN(4) == 0 {
			s.Semaphore = semaphoreAt + 2*uint64(r.IntN(4))
		}
		s.Layout = probe.NewLayout(nil, 0)
		w.sites = append(w.sites, s)
	}
	w.process.Write(textAt, w.original)
	w.session = &Session{Collector: &events.Collector{Clock: events.NewClock()}, Life: expect.Value(inject.NewLife())(t), Warn: w.warn}
	w.session.Collector.Sites = w.session.Sites
	w.attach()
	return w
}

// warn keeps warnings, but for those that name breakpoints.
func (w *world) warn(err error) {
	if !strings.Contains(err.Error(), "the program stops at each hit") {
		w.warnings = append(w.warnings, err.Error())
	}
}

// attach is a new tracer of the process.
func (w *world) attach() {
	w.armer = New(w.session, w.process)
	w.armer.setTraits(amd64.Machine, binary.LittleEndian, true)
	w.armer.findAll = func() (all []*probe.Site, err error) {
		for _, s := range w.sites {
			all = append(all, s.At(0, "module"))
		}
		return all, nil
	}
	w.names = map[uint64]bool{}
}

// arm arms some of the sites that are not armed.
func (w *world) arm() error {
	var found []*probe.Site
	for _, s := range w.sites {
		if !w.names[s.Address] && w.r.IntN(3) > 0 {
			found = append(found, s.At(0, "module"))
			w.names[s.Address] = true
		}
	}
	if len(found) == 0 {
		return nil
	}
	return w.armer.Arm(found)
}

func (w *world) text(p *fakeProcess) []byte {
	data := make([]byte, len(w.original))
	expect.OK(w.t, p.Read(textAt, data))
	return data
}

// checkText compares the code of a process with the model: it is as before but for what is armed.
func (w *world) checkText(p *fakeProcess, armed []*armedSite, what string) {
	w.t.Helper()
	want := slices.Clone(w.original)
	for _, s := range armed {
		copy(want[s.at-textAt:], s.new)
	}
	if got := w.text(p); !bytes.Equal(want, got) {
		i := slices.IndexFunc(slices.Collect(indexes(len(want))), func(i int) bool { return want[i] != got[i] })
		w.t.Fatalf("%s: the code at %#x is % x, want % x; before it was % x", what, textAt+i, got[i:min(i+8, len(got))], want[i:min(i+8, len(want))], w.original[i:min(i+8, len(want))])
	}
}

func (w *world) checkSemaphores(p *fakeProcess, raised map[uint64]semaphore, what string) {
	w.t.Helper()
	for i := range uint64(4) {
		var data [2]byte
		expect.OK(w.t, p.Read(semaphoreAt+2*i, data[:]))
		_, isRaised := raised[semaphoreAt+2*i]
		expect.Equal(w.t, map[bool]uint16{true: 1}[isRaised], binary.LittleEndian.Uint16(data[:]), "%s: semaphore %d", what, i)
	}
}

// Random sequences of what a tracer does to a process leave its code as the model says, and after the end as it was.
func TestRandomSequences(t *testing.T) {
	seeds := uint64(150)
	if testing.Short() {
		seeds = 30
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 5))
		w := newWorld(t, r)
		if w.session.Traps = r.IntN(4) == 0; r.IntN(2) == 0 {
			w.session.Collector.Sink = &events.CountSink{W: io.Discard}
		}
		for step := range 12 {
			what := fmt.Sprintf("seed %d, step %d", seed, step)
			switch r.IntN(6) {
			case 0, 1:
				expect.OK(t, w.arm(), "%s", what)
			case 2:
				expect.OK(t, w.armer.Disarm(), "%s", what)
				w.names = map[uint64]bool{}
				w.checkText(w.process, nil, what)
			case 3: // the tracer is killed
				if w.attach(); true {
					expect.OK(t, w.arm(), "%s", what)
				}
			case 4: // a child that is not traced
				child := w.process.fork(200)
				expect.OK(t, w.armer.UndoIn(child), "%s", what)
				w.checkText(child, nil, what+", child")
				w.checkSemaphores(child, nil, what+", child")
			case 5: // a child that is traced, and then not
				child := w.process.fork(300)
				armer := w.armer.Fork(child)
				w.checkText(child, armer.armed, what+", child")
				expect.OK(t, armer.Disarm(), "%s, child", what)
				armer.Release()
				w.checkText(child, nil, what+", child")
				w.checkSemaphores(child, nil, what+", child")
			}
			if len(w.armer.armed) > 0 || len(w.names) == 0 && w.armer.injector.HasAreas() && !w.armer.injector.LeftArmed {
				w.checkText(w.process, w.armer.armed, what)
				w.checkSemaphores(w.process, w.armer.semaphores, what)
			}
		}
		w.attach()
		for _, s := range w.sites { // the next tracer undoes all
			w.names[s.Address] = s != w.sites[0]
		}
		expect.OK(t, w.armer.Arm([]*probe.Site{w.sites[0].At(0, "module")}))
		expect.OK(t, w.armer.Disarm())
		w.checkText(w.process, nil, fmt.Sprintf("seed %d, end", seed))
		w.checkSemaphores(w.process, nil, fmt.Sprintf("seed %d, end", seed))
		expect.Equal(t, [32]byte{}, w.process.action, "seed %d: the handler of SIGTRAP", seed)
		expect.Equal(t, 0, len(w.warnings), "seed %d: %q", seed, w.warnings)
	}
}

// A write or a call that fails leaves each site as it was or armed, and is said.
func TestFaults(t *testing.T) {
	for seed := range uint64(200) {
		w := newWorld(t, rand.New(rand.NewPCG(seed, 6)))
		w.session.Traps = seed%4 == 0
		if seed%2 == 0 {
			w.process.failWrite = int(w.process.writes + 1 + w.r.IntN(60))
		} else {
			w.process.failCall = 1 + w.r.IntN(12)
		}
		hasFailed := func() bool { return w.process.writes >= w.process.failWrite && w.process.failWrite > 0 }
		err := w.arm()
		duringArm := hasFailed()
		refused := slices.ContainsFunc(w.armer.armed, func(s *armedSite) bool { return s.Site != nil && s.Refused != "" })
		hasOtherWay := regexp.MustCompile(` (Hop|placeStub|setHandler|newArea)\b`).MatchString(w.process.failed) // another place, or a breakpoint
		if duringArm && err == nil && len(w.warnings) == 0 && !refused && !hasOtherWay {
			t.Errorf("seed %d: a write failed in silence:%s", seed, w.process.failed)
		}
		got := w.text(w.process)
		for _, s := range w.armer.armed {
			at := s.at - textAt
			if now := got[at:][:len(s.new)]; !bytes.Equal(now, s.new) && !bytes.Equal(now, s.old) {
				t.Fatalf("seed %d: the code at %#x is % x, which was neither armed, % x, nor before, % x", seed, s.at, now, s.new, s.old)
			}
		}
		w.warnings = nil
		err = w.armer.Disarm()
		if !duringArm && hasFailed() && err == nil && len(w.warnings) == 0 {
			t.Errorf("seed %d: a write of Disarm failed in silence:%s", seed, w.process.failed)
		}
		if err == nil && len(w.warnings) == 0 {
			w.checkText(w.process, nil, fmt.Sprintf("seed %d", seed))
		}
	}
}

// A thread inside of a restartable sequence makes no calls if there is another; else it goes on where the sequence aborts.
func TestCallingThread(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)))
	pc := amd64.Machine.Traits().Threads.PC
	w.process.inside[100] = 0x1234
	before := slices.Clone(w.process.threads[100])
	expect.OK(t, w.arm())
	expect.Equal(t, before, w.process.threads[100])
	w.process.inside[101] = 0x1234
	expect.OK(t, w.armer.Disarm())
	w.names = map[uint64]bool{}
	expect.OK(t, w.arm())
	var aborted int
	for _, registers := range w.process.threads {
		if binary.LittleEndian.Uint64(registers[pc:]) == 0x1234 {
			aborted++
		}
	}
	expect.Equal(t, 1, aborted)
}

// A process whose calls do not reach the kernel gets breakpoints, and one that ends is no fault.
func TestNoCalls(t *testing.T) {
	w := newWorld(t, rand.New(rand.NewPCG(1, 1)))
	w.process.dispatched[100], w.process.dispatched[101] = true, true
	expect.OK(t, w.arm())
	expect.Equal(t, 1, len(w.warnings))
	expect.Contains(t, w.warnings[0], "handles its system calls itself")
	for _, s := range w.armer.armed {
		expect.Equal(t, []byte{0xf1}, s.new)
	}
	expect.OK(t, w.armer.Disarm())
	w.checkText(w.process, nil, "breakpoints")

	w = newWorld(t, rand.New(rand.NewPCG(1, 1)))
	w.process.dieAt = 5
	if err := w.arm(); err != nil && !isGone(err) && !errors.Is(err, unix.ESRCH) {
		t.Errorf("got %v", err)
	}
}

// The version of a file is that of the one which was read, whatever its path leads to by now.
func TestVersionOfTheOpenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lib.so")
	expect.OK(t, os.WriteFile(path, []byte("read"), 0o666))
	m := &image.Module{Path: path, Info: expect.Value(os.Stat(path))(t)}
	before := versionOf(m)
	expect.OK(t, os.Remove(path))
	expect.OK(t, os.WriteFile(path, []byte("other"), 0o666))
	expect.Equal(t, true, before == versionOf(m))
	expect.Equal(t, int64(4), before.size)
	expect.Equal(t, true, versionOf(&image.Module{Path: path}) == fileVersion{})
}
