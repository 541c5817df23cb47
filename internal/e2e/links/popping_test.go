package links

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/product"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// poppingShapes have calls of stubs where what the callees pop shows in different ways, or nowhere.
var poppingShapes = map[string]string{
	"before four arguments": "int f(int a, int b) { ONE(a); return four(a, b, a, b); }",
	"before a call":         "int f(int a, int b) { ONE(a); return work(a); }",
	"last":                  "int f(int a, int b) { TWO(a, b); return a + 1; }",
	"long":                  "int f(int a, int b) { long long v = a; LONG(v); return (int)(v >> 3) + work(b); }",
	"no arguments":          "int f(int a, int b) { NO(); return work(a) + b; }",
	"loop":                  "int f(int a, int b) { int s = 0; for (int i = 0; i < a; i++) { TWO(i, s); s += work(i); } return s; }",
	"many":                  "int f(int a, int b) { TWO(a, b); TWO(b, a); work(a); ONE(a); return work(b); }",
	"early returns":         "int f(int a, int b) { if (a < 0) { ONE(a); return -1; } if (b < 0) { TWO(a, b); return -2; } return four(a, b, a, b); }",
	"branches":              "int f(int a, int b) { if (a > 2) { if (b > 1) TWO(a, b); else work(a); } ONE(b); return a ^ b; }",
	"variables":             "int f(int a, int b) { volatile int q[3] = { 1, 2, 3 }; q[a & 1] = b; TWO(a, q[a & 1]); work(q[1]); return q[2] + a; }",
	"alloca":                "int f(int a, int b) { char *q = __builtin_alloca((a & 15) + 16); q[0] = a; TWO(a, b); return q[0] + work(b); }",
	"structure":             "int f(int a, int b) { struct five s = structure(a); TWO(a, s.a[2]); return s.a[b & 3]; }",
	"switch": "int f(int a, int b) { switch (a & 7) { case 0: ONE(b); break; case 1: TWO(a, b); break; case 2: work(a); break;" +
		" case 3: TWO(b, a); work(b); break; case 5: return four(1, 2, a, b); default: ONE(a); } return a; }",
	"goto":         "int f(int a, int b) { static void *to[] = { &&x, &&y, &&z }; goto *to[a & 1]; x: ONE(a); return 1; y: TWO(a, b); z: return work(b); }",
	"printing":     "int f(int a, int b) { TWO(a, b); return printf(\"%d \", a) + b; }",
	"varying":      "int f(int a, int b) { TWO(a, b); return varying(a, b); }",
	"varying loop": "int f(int a, int b) { int s = b; for (int i = 0; i < a; i++) { TWO(i, s); s += varying(i, s); } return s; }",
	"tail":         "int f(int a, int b) { return four(a, b, 1, 2); } void tail(int a, int b) { if (a > b) TWO(a, b); }",
	"swapped tail": "int f(int a, int b) { return four(a, b, 1, 2); } void tail(int a, int b) { TWO(b, a); }",
	"bare tail":    "int f(int a, int b) { return four(a, b, 1, 2); } void tail(int a, int b) { TWO(a, b); }",
	"only tails": "int f(int a, int b) { return a + b; } void tail(int a, int b)" +
		" { switch (a & 3) { case 0: TWO(a, b); break; case 1: TWO(b, a); break; case 2: work(a); TWO(a, a); break; default: TWO(b, b); } }",
}

const (
	poppingStart = `#include <stdio.h>
#define NO __dtrace_probe_app___no
#define ONE __dtrace_probe_app___one
#define TWO __dtrace_probe_app___two
#define LONG __dtrace_probe_app___long
void NO(void), ONE(int), TWO(int, int), LONG(long long), tail(int, int);
struct five { int a[5]; };
#define OUTSIDE __attribute__((noinline, weak))
OUTSIDE int work(int a) { return a ^ 5; }
OUTSIDE int four(int a, int b, int c, int d) { return a + b * 3 + c * 5 + d * 7; }
OUTSIDE int varying(int a, ...) { __builtin_va_list l; __builtin_va_start(l, a); a ^= __builtin_va_arg(l, int); __builtin_va_end(l); return a; }
OUTSIDE struct five structure(int x) { struct five s = { { x, x + 1, x + 2, x + 3, x + 4 } }; return s; }
OUTSIDE void tail(int a, int b);
OUTSIDE int f(int a, int b);
`
	poppingEnd = `
OUTSIDE int run(int i, int j) { volatile int k = i * 3 + j; if (tail) { tail(i, j); tail(j, k); } return f(i, j) + k; }
int main(void)
{
	unsigned sum = 0;
	for (int i = -4; i < 40; i++)
		for (int j = -3; j < 5; j++)
			sum = sum * 31 + run(i, j);
	printf("%u\n", sum);
	return 0;
}
`
)

// TestShapesOfCalleePops has functions whose callees pop their arguments refused, or they run as their
// twins. None is refused whose callees do not.
func TestShapesOfCalleePops(t *testing.T) {
	m := toolchains.I386
	m.Need(t)
	compilers := []toolchains.Compiler{toolchains.GCC, toolchains.OldClang, toolchains.Clang}
	levels := []string{"-O0", "-O0 -fno-pic", "-O1 -fomit-frame-pointer", "-O1 -fno-pic -fno-asynchronous-unwind-tables", "-O2", "-O2 -fno-pic", "-O2 -fPIC",
		"-O2 -fno-omit-frame-pointer", "-O2 -fno-asynchronous-unwind-tables", "-Os -fno-pic"}
	for _, shape := range slices.Sorted(maps.Keys(poppingShapes)) {
		chosen := rand.IntN(len(compilers) * len(levels))
		for i, cc := range compilers {
			for j, level := range levels {
				if !product.All() && chosen != i*len(levels)+j {
					continue
				}
				t.Run(strings.Join([]string{shape, cc.Name, level}, " "), func(t *testing.T) {
					t.Parallel()
					tools.Need(t, cc.Name)
					b := stackBuild{t, m, slices.Concat(m.CC(cc), strings.Fields(level), []string{"-w", "-mrtd"}), t.TempDir()}
					b.compile("popping", poppingStart+poppingShapes[shape]+poppingEnd)
					if out, err := tools.Try(converter, "--layout=pairs", "-o", b.path("tried.o"), b.path("popping.o")); err == nil {
						b.compare("popping", nil, false, "")
					} else if !strings.Contains(out, "compile without -mrtd") {
						t.Error(out)
					}
					b.compiler = b.compiler[:len(b.compiler)-1]
					b.compile("popping", poppingStart+poppingShapes[shape]+poppingEnd)
					_, err := tools.Try(converter, "--layout=pairs", b.path("popping.o"))
					expect.OK(t, err)
				})
			}
		}
	}
}
