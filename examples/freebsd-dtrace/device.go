//go:build freebsd && (amd64 || arm64)

package main

// The ioctls of /dev/dtrace/dtrace, for 64-bit kernels of FreeBSD 12 to 15
// (sys/dtrace.h). All numbers are little-endian.

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"syscall"
	"unsafe"
)

// Lengths of names, and offsets in struct dtrace_probedesc.
const (
	lenName     = 64
	lenFunction = 192
	sizeProbe   = 4 + 3*lenName + lenFunction
)

// Length of types, and offsets in struct dtrace_argdesc.
const (
	lenType    = 128
	atArgument = 4
	atNative   = 12
	sizeType   = atNative + 2*lenType
)

// Commands: the direction, the size of the argument, the group 'x' and a number.
const (
	out   = 0x40000000
	in    = 0x80000000
	group = 'x' << 8

	cmdProbes  = out | in | sizeProbe<<16 | group | 2
	cmdBuffer  = in | 8<<16 | group | 4
	cmdEnable  = out | in | 16<<16 | group | 6
	cmdType    = out | in | sizeType<<16 | group | 9
	cmdEnabled = in | sizeEnabled<<16 | group | 8
	cmdGo      = out | 4<<16 | group | 12
	cmdStop    = out | in | 4<<16 | group | 13
)

// bufferSize is that of each processor's buffer in bytes.
const bufferSize = 4 << 20

// device is an open consumer. Its probes are disabled when it is closed.
type device struct {
	file    *os.File
	args    int    // recorded of each hit
	buffer  []byte // of a snapshot
	probes  map[uint32]probe
	enabled map[uint32]uint32 // the probe of each enabling
}

func open() (*device, error) {
	f, err := os.OpenFile("/dev/dtrace/dtrace", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	return &device{file: f, buffer: make([]byte, bufferSize), enabled: map[uint32]uint32{}}, nil
}

func (d *device) close() error { return d.file.Close() }

func (d *device) ioctl(what string, cmd uintptr, arg unsafe.Pointer) error {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, d.file.Fd(), cmd, uintptr(arg))
	if errno != 0 {
		return fmt.Errorf("%s: %w", what, errno)
	}
	return nil
}

// eachProbe calls f with all probes, sorted by number.
func (d *device) eachProbe(f func(probe)) error {
	var desc [sizeProbe]byte
	for id := uint32(0); ; {
		binary.LittleEndian.PutUint32(desc[:], id)
		err := d.ioctl("probes", cmdProbes, unsafe.Pointer(&desc))
		if errors.Is(err, syscall.ESRCH) {
			return nil
		}
		if err != nil {
			return err
		}
		id = binary.LittleEndian.Uint32(desc[:])
		names := desc[4:]
		next := func(n int) string {
			s := text(names[:n])
			names = names[n:]
			return s
		}
		f(probe{id, next(lenName), next(lenName), next(lenFunction), next(lenName)})
		id++
	}
}

// text returns a string that ends with a NUL.
func text(b []byte) string {
	s, _, _ := bytes.Cut(b, []byte{0})
	return string(s)
}

// argument returns the type of a probe's argument and the one that D programs see, and
// false if there is no such argument.
func (d *device) argument(id uint32, n int) (native, translated string, ok bool) {
	var desc [sizeType]byte
	binary.LittleEndian.PutUint32(desc[:], id)
	binary.LittleEndian.PutUint32(desc[atArgument:], uint32(n))
	err := d.ioctl("type", cmdType, unsafe.Pointer(&desc))
	if err != nil || binary.LittleEndian.Uint32(desc[atArgument:]) != uint32(n) {
		return "", "", false
	}
	return text(desc[atNative:][:lenType]), text(desc[atNative+lenType:]), true
}

// enable enables what patterns match, and has args arguments recorded at each hit. It
// returns how many probes those are.
func (d *device) enable(patterns []string, args int) (int, error) {
	d.args = args
	dof := enabling(patterns, args)
	arg := struct {
		dof     unsafe.Pointer
		matched int32
		_       int32
	}{dof: unsafe.Pointer(&dof[0])}
	err := d.ioctl("enable", cmdEnable, unsafe.Pointer(&arg))
	runtime.KeepAlive(dof)
	return int(arg.matched), err
}

func (d *device) start() error {
	var cpu int32
	return d.ioctl("go", cmdGo, unsafe.Pointer(&cpu))
}

func (d *device) stop() error {
	var cpu int32
	return d.ioctl("stop", cmdStop, unsafe.Pointer(&cpu))
}

// snapshot is struct dtrace_bufdesc.
type snapshot struct {
	size    uint64
	cpu     uint32
	errors  uint32
	drops   uint64
	data    unsafe.Pointer
	oldest  uint64
	created uint64
}

// hits are those of one probe.
type hits struct {
	n    int
	last []uint64 // arguments
}

// maxCPU is more than any kernel has; those that are absent are passed over.
const maxCPU = 256

// print prints the hits of each probe, by name.
func (d *device) print() error {
	d.probes = map[uint32]probe{}
	if err := d.eachProbe(func(p probe) { d.probes[p.id] = p }); err != nil {
		return err
	}
	found := map[probe]*hits{}
	for cpu := range uint32(maxCPU) {
		s := snapshot{size: bufferSize, cpu: cpu, data: unsafe.Pointer(&d.buffer[0])}
		p := &s
		err := d.ioctl("snapshot", cmdBuffer, unsafe.Pointer(&p))
		if errors.Is(err, syscall.ENOENT) {
			continue
		}
		if err != nil {
			return err
		}
		if s.drops > 0 || s.errors > 0 {
			fmt.Printf("cpu %d: %d drops, %d errors\n", cpu, s.drops, s.errors)
		}
		if err := d.read(d.buffer[:s.size], found); err != nil {
			return err
		}
	}
	all := make([]probe, 0, len(found))
	for p := range found {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b probe) int { return cmp.Compare(a.String(), b.String()) })
	total := 0
	for _, p := range all {
		h := found[p]
		total += h.n
		fmt.Printf("%8d %s", h.n, p)
		for i, v := range h.last {
			fmt.Printf(" arg%d=%#x", i, v)
		}
		fmt.Println()
	}
	fmt.Printf("%8d hits of %d probes\n", total, len(all))
	return nil
}

// sizeHeader is the length of what a record begins with: the number of the enabling and
// two halves of a timestamp.
const sizeHeader = 12

// read counts the records of a buffer.
func (d *device) read(data []byte, found map[probe]*hits) error {
	size := sizeHeader + 4 + 8*max(d.args, 1) // aligned
	for len(data) >= 4 {
		id := binary.LittleEndian.Uint32(data)
		if id == 0 { // padding
			data = data[4:]
			continue
		}
		if len(data) < size {
			return fmt.Errorf("a record of %d bytes, want %d", len(data), size)
		}
		p, err := d.probeOf(id)
		if err != nil {
			return err
		}
		h := found[p]
		if h == nil {
			h = &hits{last: make([]uint64, d.args)}
			found[p] = h
		}
		h.n++
		for i := range h.last {
			h.last[i] = binary.LittleEndian.Uint64(data[sizeHeader+4+8*i:])
		}
		data = data[size:]
	}
	return nil
}

// sizeEnabled is that of struct dtrace_eprobedesc with one record.
const sizeEnabled = 24 + 32

// probeOf returns the probe of an enabling.
func (d *device) probeOf(id uint32) (probe, error) {
	if known, ok := d.enabled[id]; ok {
		return d.probes[known], nil
	}
	var desc [sizeEnabled + 32*maxArguments]byte
	binary.LittleEndian.PutUint32(desc[:], id)
	p := &desc
	if err := d.ioctl("enabling", cmdEnabled, unsafe.Pointer(&p)); err != nil {
		return probe{}, err
	}
	d.enabled[id] = binary.LittleEndian.Uint32(desc[4:])
	return d.probes[d.enabled[id]], nil
}
