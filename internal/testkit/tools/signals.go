package tools

import (
	"os"
	"os/signal"
	"testing"
)

// Heed makes programs that the test starts heed signals which this process was started
// to ignore, as under nohup: those that a process watches are the default for a child.
func Heed(t testing.TB, signals ...os.Signal) {
	t.Helper()
	c := make(chan os.Signal, 1)
	signal.Notify(c, signals...)
	t.Cleanup(func() { signal.Stop(c) })
}
