package limits

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"

	"sdtconvert/internal/testkit/tools"
)

// program is the program under test.
var program string

func TestMain(m *testing.M) {
	os.Exit(tools.Main(m, func(_, path string) error {
		program = path
		return nil
	}))
}

// cost is what a run has cost.
type cost struct {
	memory  int64         // bytes, the peak
	work    time.Duration // of the processors
	printed int64         // bytes
	status  string
}

type counter struct {
	n    int64
	head []byte
}

func (c *counter) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	if len(c.head) < 300 {
		c.head = append(c.head, b[:min(len(b), 300-len(c.head))]...)
	}
	return len(b), nil
}

var _ io.Writer = (*counter)(nil)

func measure(dir string, args []string) cost {
	var out counter
	cmd := exec.Command("sh", append([]string{"-c", `ulimit -t ${CPU:-120}; exec "$@"`, "sh", program}, args...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &out
	cmd.Start()
	stop := make(chan bool)
	killed := ""
	go func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
				b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", cmd.Process.Pid))
				var a, rss int64
				fmt.Sscan(string(b), &a, &rss)
				if rss*4096 > 5<<30 {
					killed = "MEMORY "
					cmd.Process.Kill()
				}
				if out.n > 20<<30 {
					killed = "OUTPUT "
					cmd.Process.Kill()
				}
			}
		}
	}()
	err := cmd.Wait()
	close(stop)
	ru := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	status := killed + "ok"
	if err != nil {
		status = killed + err.Error()
	}
	return cost{ru.Maxrss << 10, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), out.n, status + " " + strings.ReplaceAll(string(out.head[:min(len(out.head), 130)]), "\n", "|")}
}

func TestProto(t *testing.T) {
	size := 2 << 20
	if s := os.Getenv("SIZE"); s != "" {
		fmt.Sscan(s, &size)
	}
	only := os.Getenv("ONLY")
	for _, a := range append(attacks, textAttacks...) {
		if only != "" && !strings.Contains(","+only+",", ","+a.name+",") {
			continue
		}
		dir := t.TempDir()
		data := a.make(size)
		os.WriteFile(filepath.Join(dir, "in.o"), data, 0o666)
		total := len(data)
		os.WriteFile(filepath.Join(dir, "in"), []byte("@in.o @in.o\n"), 0o666)
		os.WriteFile(filepath.Join(dir, "tiny.o"), object(calls(1), callsOf(1, 2, false), one(5, stub)).bytes(), 0o666)
		data = nil
		debug.FreeOSMemory()
		os.WriteFile(filepath.Join(dir, "shop.d"), []byte("provider shop { probe placed(); };\n"), 0o666)
		for _, c := range a.commands {
			args := strings.Fields(strings.NewReplacer("FILE", "in.o", "OUT", "out").Replace(c))
			r := measure(dir, args)
			st, _ := os.Stat(filepath.Join(dir, "out"))
			var n int64
			if st != nil {
				n = st.Size()
			}
			flag := ""
			if x := float64(r.memory) / float64(total); x > 30 && r.memory > 100<<20 || r.work > time.Duration(total/1000)*1000*3 && r.work > time.Second || r.printed > 100*int64(total) || n > 100*int64(total) {
				flag = "!!!"
			}
			fmt.Printf("%-20s %-45s %6.1fMB mem %7.1f MB x%-5.1f cpu %6.2fs out %d file %d %s %s\n", a.name, c, float64(total)/1e6, float64(r.memory)/1e6, float64(r.memory)/float64(total), r.work.Seconds(), r.printed, n, flag, r.status)
			os.Remove(filepath.Join(dir, "out"))
		}
	}
}
