package image

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
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
	text string // of the line: Linux writes a line feed in a name as \012, and a backslash as it is
}

// fileID tells files apart, by what stat and the maps say.
type fileID struct {
	major, minor uint32 // of the device
	inode        uint64
}

// deleted is what Linux writes behind the path of a file without a name.
const deleted = " (deleted)"

// maxMapNames bounds the names in a memory map, in bytes: a process may map 65,530 files, of names of 4 KiB each.
const maxMapNames = 64 << 20

// readMaps reads the memory map of a process.
func readMaps(dir string) ([]Mapping, error) {
	file, err := os.Open(dir + "/maps")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return parseMaps(file)
}

// parseMaps reads /proc/PID/maps, which is sorted by address.
func parseMaps(r io.Reader) (mappings []Mapping, err error) {
	lines, names := bufio.NewScanner(r), 0
	lines.Buffer(nil, 1<<20)
	last := Mapping{}
	for lines.Scan() {
		m, ok := parseMapping(lines.Text())
		if !ok || m.Start < last.End {
			return nil, fmt.Errorf("the line %q of its memory map makes no sense", lines.Text())
		}
		if m.text == last.text {
			m.text, m.Path = last.text, last.Path
		} else if names += len(m.text); names > maxMapNames {
			return nil, fmt.Errorf("its memory map has more than %d MiB of names", maxMapNames>>20)
		} else {
			m.text, m.Path = strings.Clone(m.text), strings.Clone(m.Path)
		}
		mappings, last = append(mappings, m), m
	}
	return mappings, lines.Err()
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
	m.text = strings.TrimLeft(line, " ")
	m.Path = unescape(m.text)
	if m.file != (fileID{}) {
		m.Path, m.Deleted = strings.CutSuffix(m.Path, deleted)
	}
	return m, m.Start < m.End
}

func unescape(text string) string { return strings.ReplaceAll(text, `\012`, "\n") }

// paths returns the paths that the line may stand for, the likeliest first: only their files tell which one it is.
func (m *Mapping) paths() (paths []string) {
	text := strings.TrimSuffix(m.text, deleted)
	for _, path := range []string{unescape(text), text, unescape(m.text), m.text} {
		if !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// Mappings returns the memory map of a process as it is now, by address.
func Mappings(pid int) ([]Mapping, error) {
	p := runningProcess(pid)
	maps, err := readMaps(p.dir)
	if err != nil {
		return nil, p.openError(err)
	}
	return maps, nil
}
