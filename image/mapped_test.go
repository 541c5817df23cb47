//go:build linux

package image_test

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"sdtconvert/image"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// codeFile returns the file of a path among those whose code a process has mapped, nil if there is none.
func codeFile(t *testing.T, pid int, path string) *image.CodeFile {
	t.Helper()
	var code image.CodeFiles
	expect.OK(t, code.Add(pid))
	for _, f := range code.Files {
		if f.Path == path {
			return f
		}
	}
	return nil
}

// contents returns what is in a file of code.
func contents(t *testing.T, f *image.CodeFile) string {
	t.Helper()
	file := expect.Value(f.Open())(t)
	defer file.Close()
	return string(expect.Value(io.ReadAll(file))(t))
}

// The memory map writes a line feed in a name as \012, and has a suffix for files without a name. Names may have both.
func TestNamesOfMappedFiles(t *testing.T) {
	program, lib, other := host(t), library(t), library(t, "-DOTHER=1", "-g")
	for _, names := range [][2]string{{"a\nb.so", `a\012b.so`}, {`a\012b.so`, "a\nb.so"}, {"c.so (deleted)", "c.so"}, {"d\n.so (deleted)", "d\n.so"}} {
		t.Run(fmt.Sprintf("%q", names[0]), func(t *testing.T) {
			directory := t.TempDir()
			path := filepath.Join(directory, names[0])
			expect.OK(t, copyOver(lib, path))
			expect.OK(t, copyOver(other, filepath.Join(directory, names[1])))
			running := start(t, program, path)
			p := running.open(t)
			m := p.Module(header0(t, running.out))
			if m == nil || m.Path != path || m.Source != image.FromPath || m.Note != "" {
				t.Fatalf("%+v", m)
			}
			checkProcess(t, p, running.out, 1)
			f := codeFile(t, running.Process.Pid, path)
			if f == nil {
				t.Fatal("is not among the files with code")
			}
			expect.Equal(t, string(disk.Read(t, lib)), contents(t, f))
			// Once another file has its place, it is not that one that is opened.
			expect.OK(t, copyOver(other, path))
			if _, err := f.Open(); err == nil {
				t.Error("another file is opened")
			}
			if again := codeFile(t, running.Process.Pid, path); again != nil {
				t.Errorf("another file is found: %+v", again)
			}
		})
	}
}

// A file of another mount namespace is the one that is mapped, not what has its path here; and where a pipe has its path here, that is
// not opened.
func TestMountNamespaces(t *testing.T) {
	tools.Need(t, "gcc", "unshare", "mount")
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	program, lib, other := host(t), library(t), library(t, "-DOTHER=1", "-g")
	for _, kind := range []string{"file", "pipe", "nothing"} {
		t.Run(kind, func(t *testing.T) {
			directory := t.TempDir()
			path := filepath.Join(directory, "inner", "lib.so")
			hidden := filepath.Join(directory, "hidden")
			expect.OK(t, os.Mkdir(filepath.Dir(path), 0o755))
			expect.OK(t, os.Mkdir(hidden, 0o755))
			expect.OK(t, copyOver(lib, filepath.Join(hidden, "lib.so")))
			switch kind {
			case "file":
				expect.OK(t, copyOver(other, path))
			case "pipe":
				expect.OK(t, unix.Mkfifo(path, 0o666))
			}
			running := start(t, "unshare", "--mount", "--propagation", "private", "sh", "-c",
				`mount --bind "$1" "$2" && exec "$3" "$2/lib.so"`, "sh", hidden, filepath.Dir(path), program)
			p := running.open(t)
			m := p.Module(header0(t, running.out))
			if m == nil || m.Path != path || m.Source != image.FromPath || m.Note != "" {
				t.Fatalf("%+v", m)
			}
			checkProcess(t, p, running.out, 1)
			if f := codeFile(t, running.Process.Pid, path); f != nil {
				t.Errorf("the file of this namespace is found")
			}
			f := codeFile(t, running.Process.Pid, fmt.Sprintf("/proc/%d/root%s", running.Process.Pid, path))
			if f == nil {
				t.Fatal("is not among the files with code")
			}
			expect.Equal(t, string(disk.Read(t, lib)), contents(t, f))
		})
	}
}

// mapper builds the program that maps files.
func mapper(t *testing.T) string {
	t.Helper()
	tools.Need(t, "gcc")
	path := filepath.Join(t.TempDir(), "mapper")
	tools.Output(t, "gcc", "-o", path, source(t, "mapper.c"))
	return path
}

// A file that no path leads to is found by its mapping, which takes privileges: here a mount covers it.
func TestHiddenFiles(t *testing.T) {
	tools.Need(t, "unshare", "mount")
	if os.Getuid() != 0 {
		t.Skip("only root can mount")
	}
	program, lib := mapper(t), library(t)
	directory := t.TempDir()
	path := filepath.Join(directory, "lib.so")
	running := start(t, "unshare", "--mount", "--propagation", "private", "sh", "-c",
		`exec 3<&0; mount -t tmpfs none "$1" && cp "$2" "$1/lib.so" && mkfifo "$1/go" && { "$3" 1 "$1/lib.so" <&3 >"$1/go" & } && read ready <"$1/go" &&
		mount -t tmpfs none "$1" && echo child $! && echo ready && wait`, "sh", directory, lib, program)
	pid := 0
	expect.Value(fmt.Sscanf(running.out, "child %d", &pid))(t)
	f := codeFile(t, pid, fmt.Sprintf("/proc/%d/root%s", pid, path))
	if f == nil {
		t.Fatal("is not among the files with code")
	}
	expect.Equal(t, string(disk.Read(t, lib)), contents(t, f))
	p := expect.Value(image.OpenProcess(pid))(t)
	defer p.Close()
	if found := modules(p, path); len(found) != 1 || found[0].Source != image.FromMapping {
		t.Errorf("%+v", found)
	}
}

// withSegments returns a library with so many more segments, copies of its first.
func withSegments(library []byte, more int) []byte {
	const header, phoff, phnum = 56, 32, 56 // bytes of Elf64_Phdr; offsets in Elf64_Ehdr
	le := binary.LittleEndian
	first, n := le.Uint64(library[phoff:]), int(le.Uint16(library[phnum:]))
	table := library[first:][:n*header]
	load := 0
	for le.Uint32(table[load*header:]) != uint32(elf.PT_LOAD) {
		load++
	}
	out := append(bytes.Clone(library), make([]byte, 8-len(library)%8)...)
	le.PutUint64(out[phoff:], uint64(len(out)))
	le.PutUint16(out[phnum:], uint16(n+more))
	return append(append(out, table...), bytes.Repeat(table[load*header:][:header], more)...)
}

// Modules of one file share an image. A file whose segments and mappings are too many is named, and the others are read.
func TestManyMappings(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("the library has to be of ELFCLASS64, in little endian")
	}
	program, lib := mapper(t), library(t)
	crowded := filepath.Join(t.TempDir(), "crowded.so")
	disk.Write(t, crowded, withSegments(disk.Read(t, lib), 9000))
	const mapped = 150
	p := start(t, program, fmt.Sprint(mapped), crowded, lib).open(t)
	if found := modules(p, crowded); len(found) != 1 || !found[0].Limited || found[0].Image != nil || found[0].Note == "" {
		t.Errorf("%d modules, %+v", len(found), found[0])
	}
	images := map[image.Image]bool{}
	for _, m := range modules(p, lib) {
		images[m.Image] = true
	}
	expect.Equal(t, mapped, len(modules(p, lib)))
	expect.Equal(t, 1, len(images))
}
