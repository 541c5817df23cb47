// Package expect fails tests for errors, for values that differ, and for texts that lack a
// part. Where words are given, they are a format with its values that says what was looked at.
package expect

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// OK ends a test for an error.
func OK(t testing.TB, err error, words ...any) {
	t.Helper()
	if err != nil {
		t.Fatal(about(words, err.Error()))
	}
}

// Value returns what a call returns beside its error, for which it ends the test:
// expect.Value(os.ReadFile(path))(t).
func Value[T any](v T, err error) func(t testing.TB, words ...any) T {
	return func(t testing.TB, words ...any) T {
		t.Helper()
		OK(t, err, words...)
		return v
	}
}

// Failure returns the text of the error of a call, for Equal.
func Failure[T any](_ T, err error) string { return fmt.Sprint(err) }

// Error fails a test, which goes on, if there is no error, or its text does not have a part.
func Error(t testing.TB, err error, part string, words ...any) {
	t.Helper()
	if err == nil {
		fail(t, words, fmt.Sprintf("no error, want one with %q", part))
	} else {
		Contains(t, err.Error(), part, words...)
	}
}

// Equal fails a test, which goes on, if a value is not the wanted one.
func Equal[T any](t testing.TB, want, got T, words ...any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		fail(t, words, "want (-) and got (+): "+diff)
	}
}

// Contains fails a test, which goes on, if a text does not have a part.
func Contains(t testing.TB, text, part string, words ...any) {
	t.Helper()
	if !strings.Contains(text, part) {
		fail(t, words, fmt.Sprintf("no %q in\n%s", part, text))
	}
}

// Lacks fails a test, which goes on, if a text has a part.
func Lacks(t testing.TB, text, part string, words ...any) {
	t.Helper()
	if strings.Contains(text, part) {
		fail(t, words, fmt.Sprintf("%q in\n%s", part, text))
	}
}

// patience is how long Soon waits. It is long, because other work may have the processors.
const patience = time.Minute

// Soon ends a test if something that other processes bring about does not hold within a minute.
func Soon(t testing.TB, holds func() bool, words ...any) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(about(words, "does not hold after "+patience.String()))
		}
	}
}

func fail(t testing.TB, words []any, what string) {
	t.Helper()
	t.Error(about(words, what))
}

func about(words []any, what string) string {
	if len(words) > 0 {
		what = fmt.Sprintf(words[0].(string), words[1:]...) + ": " + what
	}
	return what
}
