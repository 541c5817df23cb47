package parallel_test

import (
	"sync/atomic"
	"testing"
	"time"

	"sdtconvert/internal/parallel"
	"sdtconvert/internal/testkit/expect"
)

func TestEachTakesEachNumberOnce(t *testing.T) {
	for _, jobs := range []int{1, 2, 7, 100} {
		for _, n := range []int{0, 1, 2, 99, 1000} {
			calls := make([]atomic.Int32, n)
			parallel.Each(n, jobs, func(i int) { calls[i].Add(1) })
			for i := range calls {
				if got := calls[i].Load(); got != 1 {
					t.Fatalf("%d of %d with %d jobs was taken %d times", i, n, jobs, got)
				}
			}
		}
	}
}

// A nil is a result as any other.
func TestAllResultsComeInOrder(t *testing.T) {
	const n = 200
	next := 0
	parallel.InOrder(n, 8, func(i int) *int {
		if i%17 == 0 {
			time.Sleep(time.Millisecond)
		}
		if i%3 == 0 {
			return nil
		}
		return &i
	}, func(i int, r *int) {
		if i != next || (r == nil) != (i%3 == 0) || r != nil && *r != i {
			t.Errorf("result %d came in the turn of %d, as %v", i, next, r)
		}
		next++
	})
	expect.Equal(t, n, next, "results")
}
