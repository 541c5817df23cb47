package image

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Mapping is a part of a process's memory: a line of /proc/PID/maps (proc(5)).
type Mapping struct {
	Start, End uint64 // addresses; End is behind the last byte
	Offset     uint64 // in the file, bytes
	Executable bool
	Path       string // "[stack]" and its kin, or ""
	// Deleted reports that the file's name is gone, or another's.
	Deleted bool

	file fileID // {} for memory that belongs to no file
	// unknown reports that Executable is not known: gdb leaves out of core files what the process has not written.
	unknown bool
}

// fileID tells files apart, by what stat and the maps say.
type fileID struct {
	major, minor uint32 // of the device
	inode        uint64
}

// deleted is what Linux writes behind the path of a file without a name.
const deleted = " (deleted)"

// parseMaps reads /proc/PID/maps, which is sorted by address.
func parseMaps(text string) ([]Mapping, error) {
	var all []Mapping
	for line := range strings.Lines(text) {
		m, ok := parseMapping(strings.TrimSuffix(line, "\n"))
		if !ok || len(all) > 0 && m.Start < all[len(all)-1].End {
			return nil, fmt.Errorf("the line %q of its memory map makes no sense", line)
		}
		all = append(all, m)
	}
	return all, nil
}

// parseMapping reads one line:
//
//	start-end perms offset major:minor inode   path
func parseMapping(line string) (m Mapping, ok bool) {
	var word [5]string
	for i := range word {
		word[i], line, _ = strings.Cut(line, " ")
	}
	start, end, ok1 := strings.Cut(word[0], "-")
	major, minor, ok2 := strings.Cut(word[3], ":")
	if !ok1 || !ok2 || len(word[1]) != 4 {
		return m, false
	}
	m.Executable = word[1][2] == 'x'
	var numbers [6]uint64
	for i, w := range []string{start, end, word[2], major, minor, word[4]} {
		base := 16
		if i == 5 {
			base = 10
		}
		n, err := strconv.ParseUint(w, base, 64)
		if err != nil {
			return m, false
		}
		numbers[i] = n
	}
	m.Start, m.End, m.Offset = numbers[0], numbers[1], numbers[2]
	m.file = fileID{uint32(numbers[3]), uint32(numbers[4]), numbers[5]}
	if m.file.inode == 0 {
		m.file = fileID{}
	}
	m.Path = strings.ReplaceAll(strings.TrimLeft(line, " "), `\012`, "\n")
	if m.file != (fileID{}) {
		m.Path, m.Deleted = strings.CutSuffix(m.Path, deleted)
	}
	return m, m.Start < m.End
}

// ErrNoMemory is of a process that has ended, or is a thread of the kernel.
var ErrNoMemory = errors.New("has no memory of its own")

// MappedCode returns the paths of the files whose code a process has mapped, each once, below the root
// of this process. Files without a name are left out.
func MappedCode(pid int) ([]string, error) {
	p := runningProcess(pid)
	text, err := os.ReadFile(p.dir + "/maps")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH), err == nil && len(text) == 0:
		return nil, ErrNoMemory
	case err != nil:
		return nil, p.openError(err)
	}
	maps, err := parseMaps(string(text))
	if err != nil {
		return nil, p.error(err)
	}
	root := ""
	if own, err := os.Stat("/"); err == nil {
		if info, err := os.Stat(p.dir + "/root/"); err == nil && !os.SameFile(own, info) {
			root = p.dir + "/root"
		}
	}
	var files []string
	for _, m := range maps {
		if path := root + m.Path; m.Executable && m.file.inode != 0 && !m.Deleted && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	return files, nil
}
