package expect

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// recorder is a test that records its failures.
type recorder struct {
	testing.TB
	log string
}

func (r *recorder) Helper()          {}
func (r *recorder) Fatal(why ...any) { r.log += "fatal " + fmt.Sprint(why...) }
func (r *recorder) Error(why ...any) { r.log += "error " + fmt.Sprint(why...) }

func TestFailures(t *testing.T) {
	good, bad, named, fatal := &recorder{}, &recorder{}, &recorder{}, &recorder{}
	OK(good, nil)
	Equal(good, []string{"a"}, []string{"a"}, "words")
	Equal(bad, 1, 2)
	Equal(named, 1, 2, "%d of %s", 3, "these")
	OK(fatal, errors.New("fault"))
	if good.log != "" || fatal.log != "fatal fault" || !strings.HasPrefix(named.log, "error 3 of these: ") {
		t.Errorf("%q, %q, %q", good.log, fatal.log, named.log)
	}
	if !strings.HasPrefix(bad.log, "error ") || !strings.Contains(bad.log, "2") {
		t.Errorf("%q", bad.log)
	}
}
