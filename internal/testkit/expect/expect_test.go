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
	Equal(t, 1, Value(1, nil)(good))
	Equal(t, "fault", Failure(1, errors.New("fault")))
	Equal(t, "<nil>", Failure(1, nil))
	Error(good, errors.New("a fault"), "fault")
	Contains(good, "text", "ex")
	Lacks(good, "text", "xe")
	tries := 0
	Soon(good, func() bool { tries++; return tries == 3 })
	for want, fail := range map[string]func(t *recorder){
		"fatal it: fault":                       func(t *recorder) { Value(1, errors.New("fault"))(t, "it") },
		`error no error, want one with "fault"`: func(t *recorder) { Error(t, nil, "fault") },
		"error no \"fault\" in\nother":          func(t *recorder) { Error(t, errors.New("other"), "fault") },
		"error it: no \"xe\" in\ntext":          func(t *recorder) { Contains(t, "text", "xe", "it") },
		"error \"ex\" in\ntext":                 func(t *recorder) { Lacks(t, "text", "ex") },
	} {
		r := &recorder{}
		if fail(r); r.log != want {
			t.Errorf("%q, want %q", r.log, want)
		}
	}
	if good.log != "" || fatal.log != "fatal fault" || !strings.HasPrefix(named.log, "error 3 of these: ") {
		t.Errorf("%q, %q, %q", good.log, fatal.log, named.log)
	}
	if !strings.HasPrefix(bad.log, "error ") || !strings.Contains(bad.log, "2") {
		t.Errorf("%q", bad.log)
	}
}
