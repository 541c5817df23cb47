package limits

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// What a command may take for a file or a process that is small on disk.
const (
	hostileMemory = 250 << 20 // bytes
	hostileTime   = 30 * time.Second
)

// hugeHole is the size of a hole that takes a minute to read.
const hugeHole = 1 << 38

// sparse writes an ELF file whose section of a name is a hole.
func sparse(t *testing.T, path string, data []byte, name string, size int64) {
	t.Helper()
	const shoff, shnum, offset, sizeAt = 40, 60, 24, 32 // in Elf64_Ehdr, and in Elf64_Shdr
	const hole = 1 << 20                                // where it begins
	le := binary.LittleEndian
	table := bytes.Clone(data[le.Uint64(data[shoff:]):][:int(le.Uint16(data[shnum:]))*sectionSize])
	index := 0
	for i, s := range disk.ELF(t, data).Sections {
		if s.Name == name {
			index = i
		}
	}
	if index == 0 {
		t.Fatalf("no section %s", name)
	}
	le.PutUint64(table[index*sectionSize+offset:], hole)
	le.PutUint64(table[index*sectionSize+sizeAt:], uint64(size))
	file := expect.Value(os.Create(path))(t)
	le.PutUint64(data[shoff:], uint64(hole+size))
	expect.Value(file.WriteAt(data, 0))(t)
	expect.Value(file.WriteAt(table, hole+size))(t)
	expect.OK(t, file.Close())
}

// longFile writes a file of some bytes and a hole behind them.
func longFile(t *testing.T, path, begin string) {
	disk.Write(t, path, begin)
	expect.OK(t, os.Truncate(path, hugeHole))
}

// anImage and anObject are files that may be read.
func anImage() []byte { return records(2000) }

func anObject() []byte { return sites(2000) }

// hostileFiles are files that are not what they seem. Each is made at a path; any may be read by any command.
var hostileFiles = []struct {
	name string
	make func(t *testing.T, path string)
}{
	{"hole-for-strings", func(t *testing.T, path string) { sparse(t, path, anImage(), ".strtab", hugeHole) }},
	{"hole-for-symbols", func(t *testing.T, path string) { sparse(t, path, anImage(), ".symtab", hugeHole/24*24) }},
	{"hole-for-data", func(t *testing.T, path string) { sparse(t, path, anImage(), ".data", hugeHole) }},
	{"hole-for-records", func(t *testing.T, path string) { sparse(t, path, anImage(), "sdt_instances_set", hugeHole) }},
	{"hole-for-names-of-sections", func(t *testing.T, path string) { sparse(t, path, anImage(), ".shstrtab", hugeHole) }},
	{"object-with-hole-for-strings", func(t *testing.T, path string) { sparse(t, path, anObject(), ".strtab", hugeHole) }},
	{"object-with-hole-for-code", func(t *testing.T, path string) { sparse(t, path, anObject(), ".text", hugeHole) }},
	{"object-with-hole-for-relocations", func(t *testing.T, path string) { sparse(t, path, anObject(), ".rela.text", hugeHole/24*24) }},
	{"hole-for-all-headers", func(t *testing.T, path string) {
		data := anImage()
		binary.LittleEndian.PutUint64(data[40:], 1<<20) // e_shoff
		binary.LittleEndian.PutUint16(data[60:], 0xff00)
		longFile(t, path, string(data))
	}},
	{"hole-behind-an-object", func(t *testing.T, path string) { longFile(t, path, string(anObject())) }},
	{"hole-for-an-archive", func(t *testing.T, path string) { longFile(t, path, "!<arch>\n") }},
	{"hole-for-an-index", func(t *testing.T, path string) {
		longFile(t, path, "!<arch>\n"+fmt.Sprintf("%-16s%-12s%-6s%-6s%-8s%-10d`\n", "/", "0", "0", "0", "0", int64(9_000_000_000)))
	}},
	{"hole-for-names-of-members", func(t *testing.T, path string) {
		longFile(t, path, "!<arch>\n"+fmt.Sprintf("%-16s%-12s%-6s%-6s%-8s%-10d`\n", "//", "0", "0", "0", "0", int64(9_000_000_000)))
	}},
	{"hole-for-bitcode", func(t *testing.T, path string) { longFile(t, path, "BC\xc0\xde") }},
	{"hole-for-text", func(t *testing.T, path string) { longFile(t, path, "INPUT(") }},
	{"fifo", func(t *testing.T, path string) { expect.OK(t, syscall.Mkfifo(path, 0o666)) }},
	{"device", func(t *testing.T, path string) { expect.OK(t, os.Symlink("/dev/zero", path)) }},
	{"terminal", func(t *testing.T, path string) { expect.OK(t, os.Symlink("/dev/tty", path)) }},
	{"memory", func(t *testing.T, path string) { expect.OK(t, os.Symlink("/proc/self/mem", path)) }},
	{"directory", func(t *testing.T, path string) { expect.OK(t, os.Mkdir(path, 0o777)) }},
	{"loop", func(t *testing.T, path string) { expect.OK(t, os.Symlink(filepath.Base(path), path)) }},
	{"socket", func(t *testing.T, path string) {
		listener := expect.Value(net.ListenUnix("unix", &net.UnixAddr{Name: path}))(t)
		t.Cleanup(func() { listener.Close() })
	}},
	{"thin-archive-of-a-fifo", func(t *testing.T, path string) {
		expect.OK(t, syscall.Mkfifo(filepath.Join(filepath.Dir(path), "m.o"), 0o666))
		disk.Write(t, path, "!<thin>\n"+fmt.Sprintf("%-16s%-12s%-6s%-6s%-8s%-10d`\n", "m.o/", "0", "0", "0", "644", 100))
	}},
	{"thin-archive-of-itself", func(t *testing.T, path string) {
		disk.Write(t, path, "!<thin>\n"+fmt.Sprintf("%-16s%-12s%-6s%-6s%-8s%-10d`\n", filepath.Base(path)+"/", "0", "0", "0", "644", 100))
	}},
	{"debug-file-that-is-a-fifo", func(t *testing.T, path string) {
		expect.OK(t, syscall.Mkfifo(filepath.Join(filepath.Dir(path), "d.debug"), 0o666))
		disk.Write(t, path, linkedTo("d.debug", 0))
	}},
	{"debug-file-that-is-a-hole", func(t *testing.T, path string) {
		sparse(t, filepath.Join(filepath.Dir(path), "d.debug"), anImage(), ".strtab", hugeHole)
		disk.Write(t, path, linkedTo("d.debug", crc32.ChecksumIEEE(nil)))
	}},
	{"debug-file-of-a-long-name", func(t *testing.T, path string) { disk.Write(t, path, linkedTo(strings.Repeat("d", 60_000), 0)) }},
	{"names-that-command", func(t *testing.T, path string) {
		data := bytes.ReplaceAll(anImage(), []byte("placed"), []byte("\x1b[m\x9b\xff"))
		disk.Write(t, path, bytes.ReplaceAll(data, []byte("main"), []byte("m\u202e")))
	}},
}

// damaged returns files of each kind that are cut off, or have bytes that are wrong.
func damaged(count int) (all [][]byte) {
	whole := [][]byte{records(500), sites(500), debugged(elf.ET_REL, unit(nil), unitAbbrev(false), lineTable(40)), notes(2000), members(2000), frames(1000)}
	for i := range count {
		r := rand.New(rand.NewPCG(60, uint64(i)))
		data := bytes.Clone(whole[i%len(whole)])
		if i%4 == 0 {
			all = append(all, data[:r.IntN(len(data))])
			continue
		}
		for range 1 + r.IntN(3) {
			at := r.IntN(len(data))
			if r.IntN(2) == 0 {
				at %= 200 // headers
			}
			data[at] = []byte{0, 1, 0x80, 0xff, data[at] ^ 1<<r.IntN(8)}[r.IntN(5)]
		}
		all = append(all, data)
	}
	return all
}

// Whatever bytes are in a file, each command ends with a status of its own.
func TestDamagedFiles(t *testing.T) {
	tools.DependOnTree(t)
	for i, data := range damaged(tools.Cases(t, 60)) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			readByAll(t, func(t *testing.T, path string) { disk.Write(t, path, data) }, "none")
		})
	}
}

// linkedTo returns an image without symbols that names a debug file.
func linkedTo(name string, checksum uint32) []byte {
	f := recorded(8, newSymbols(), func(int) uint64 { return dataAddress })
	link := append([]byte(name), make([]byte, 4-len(name)%4)...)
	f.add(section{name: ".gnu_debuglink", kind: elf.SHT_PROGBITS, data: binary.LittleEndian.AppendUint32(link, checksum)})
	return f.bytes()
}

// allReaders are the commands that read files, of any kind.
var allReaders = []string{
	"list -v FILE", "list --json FILE", "list --inlines -v FILE", "check FILE", "check --format github FILE", "check --format json FILE", "inspect FILE", "inspect --json FILE",
	"resolve FILE 0x1000 .text+0x3", "convert -n FILE", "convert --json --stapsdt --dtrace -o OUT FILE", "stubs -o OUT FILE",
	"sites --asm -o OUT FILE", "provider -G -s shop.d -o OUT FILE", "check --require @FILE tiny.o", "ld --linker true -- -o OUT FILE",
}

// Whatever a path leads to, each command ends soon, in little memory, with a status of its own, and prints nothing that a terminal
// takes for a command.
func TestHostileFiles(t *testing.T) {
	tools.DependOnTree(t)
	for _, h := range hostileFiles {
		t.Run(h.name, func(t *testing.T) {
			t.Parallel()
			without := "none"
			if h.name == "fifo" {
				without = "@FILE" // a list of probes may come from a pipe, which is waited for
			}
			readByAll(t, h.make, without)
		})
	}
}

// readByAll makes a file and has each command read it, but for commands with a word.
func readByAll(t *testing.T, write func(t *testing.T, path string), without string) {
	t.Helper()
	directory := t.TempDir()
	disk.Write(t, filepath.Join(directory, "tiny.o"), anObject())
	disk.Write(t, filepath.Join(directory, "shop.d"), "provider shop { probe placed(); };\n")
	write(t, filepath.Join(directory, "file"))
	for _, command := range allReaders {
		if !strings.Contains(command, without) {
			withinLimits(t, directory, strings.NewReplacer("FILE", "file", "OUT", "out").Replace(command))
		}
	}
}

// withinLimits runs a command.
func withinLimits(t *testing.T, directory, command string) {
	t.Helper()
	start := time.Now()
	c := measure(t, directory, strings.Fields(command), hostileMemory, hostileTime)
	if c.memory > hostileMemory {
		t.Errorf("%s: %d MB of memory", command, c.memory>>20)
	}
	isCommand := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsGraphic(r) || r == utf8.RuneError }
	if at := strings.IndexFunc(c.text, isCommand); at >= 0 {
		t.Errorf("%s: prints %.200q", command, c.text[max(0, at-100):])
	}
	if info, err := os.Stat(filepath.Join(directory, "out")); err == nil && info.Size() > hostileMemory {
		t.Errorf("%s: wrote %d MB", command, info.Size()>>20)
	}
	t.Logf("%s: %d MB, %v", command, c.memory>>20, time.Since(start))
}

// A process that another user has made to be expensive, and that changes all the time, does not keep a command that reads it, or
// all of the system, from ending.
func TestHostileProcess(t *testing.T) {
	tools.DependOnTree(t)
	tools.Need(t, "gcc")
	if runtime.GOARCH != "amd64" {
		t.Skip("the files are for amd64")
	}
	directory := t.TempDir()
	expect.OK(t, os.Chmod(directory, 0o777))
	expect.OK(t, os.Chmod(filepath.Dir(directory), 0o755))
	tools.Output(t, "gcc", "-pthread", "-o", filepath.Join(directory, "hostile"), tools.Root("internal/e2e/limits/testdata/hostile.c"))
	path := func(name string) string { return filepath.Join(directory, name) }
	disk.Write(t, path("crowded"), segments(600_000))
	disk.Write(t, path("changing"), anImage())
	sparse(t, path("hole"), anImage(), ".strtab", hugeHole)
	disk.Write(t, path("a\nb\x9b\u202e (deleted)"), anImage())
	longFile(t, path("long"), string(anImage()))
	disk.Write(t, path("linked"), linkedTo("fifo", 0))
	cmd := exec.Command("./hostile", "crowded", "changing", "hole", "a\nb\x9b\u202e (deleted)", "long", "linked")
	cmd.Dir = directory
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	running := tools.StartCommand(t, cmd)
	defer running.Process.Kill()
	running.Until(t, "ready")
	for _, command := range []string{
		"list -v -p PID", "list --json -p PID", "resolve -p PID 0x1000 0x400000", "list --system", "trace --for 1s -p PID", "trace --for 1s --format ctf -o OUT -p PID",
	} {
		out := expect.Value(os.MkdirTemp(t.TempDir(), ""))(t)
		withinLimits(t, directory, strings.NewReplacer("PID", fmt.Sprint(running.Process.Pid), "OUT", filepath.Join(out, "trace")).Replace(command))
	}
	expect.OK(t, running.Process.Signal(syscall.Signal(0)), "the process still runs")
}
