package machines_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// formRow is a row of include/sdt_forms.h.
type formRow struct {
	code, mask []byte
	test, tail bool
	step       int
}

// sections are the parts of the header by the macro that selects one.
var sections = map[string]string{
	"amd64": "__x86_64__", "i386": "__i386__", "arm": "__arm__", "arm64": "__aarch64__", "riscv64": "__riscv",
	"ppc64le": "__LITTLE_ENDIAN__", "ppc64": "defined(__powerpc64__)\n", "loong64": "__loongarch__", "s390x": "__s390x__",
}

// otherwise are forms that the cases do not have: of calls through registers, and for
// processors before ARMv6T2.
var otherwise = map[string]bool{"0f1f4000": true, "0f1f00": true, "6690": true, "0000a001": true}

// The header for kernels has a row for each disabled form without a semaphore, and it
// says the same: a test, a return, or where to go on. A jump to a helper that has a
// condition is left out: a handler would have to evaluate it.
func TestFormsHeader(t *testing.T) {
	text := disk.Read(t, tools.Root("include", "sdt_forms.h"))
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		rows := formRows(t, string(text), m.Traits().Name)
		used := map[int]bool{}
		for _, s := range c.sites {
			for _, d := range s.disabled {
				if d.env.SemaphoreBytes == 0 && d.error == "" && !(s.form == arch.CondTail && d.target == arch.TargetHelper) {
					checkForm(t, rows, used, s, d)
				}
			}
		}
		for i, r := range rows {
			if !used[i] && !otherwise[fmt.Sprintf("%x", r.code)] {
				t.Errorf("no case has the form % x", r.code)
			}
		}
	})
}

func checkForm(t *testing.T, rows []formRow, used map[int]bool, s *siteCase, d *disabledCase) {
	t.Helper()
	code := d.code[d.record-d.pc:]
	i := slices.IndexFunc(rows, func(r formRow) bool { return r.test == (d.kind == arch.Enabled) && r.matches(code) })
	if i < 0 {
		t.Errorf("%s %v: no row for % x", s.name, d.kind, code)
		return
	}
	r := rows[i]
	used[i] = true
	if r.step == 0 != (r.tail && code[0] != 0x90) && !r.test {
		t.Errorf("%s: % x goes on %d bytes further, tail %v", s.name, code, r.step, r.tail)
	}
	if !r.test && s.form != arch.Nop && r.tail != (s.form != arch.Call) {
		t.Errorf("%s %v: the row of % x says tail %v", s.name, d.kind, code, r.tail)
	}
	if r.step > len(code) {
		t.Errorf("%s: % x goes on %d bytes further", s.name, code, r.step)
	}
}

func (r formRow) matches(code []byte) bool {
	if len(code) < len(r.code) {
		return false
	}
	for i := range r.code {
		if code[i]&r.mask[i] != r.code[i] {
			return false
		}
	}
	return true
}

var (
	rowText  = regexp.MustCompile(`\{ (\d), \{ ([^}]*) \}, (SDT_M\d|\{ [^}]* \}), (\d), (\d), (\d) \}`)
	partText = regexp.MustCompile(`(?m)^#(?:el)?if (.*\n)`)
)

// formRows reads the rows of a machine.
func formRows(t *testing.T, header, machine string) []formRow {
	t.Helper()
	_, table, _ := strings.Cut(header, "sdt_forms[] = {\n")
	parts := partText.FindAllStringSubmatchIndex(table, -1)
	for i, p := range parts {
		if !strings.Contains(table[p[2]:p[3]], sections[machine]) {
			continue
		}
		end := len(table)
		if i+1 < len(parts) {
			end = parts[i+1][0]
		}
		var rows []formRow
		for _, m := range rowText.FindAllStringSubmatch(table[p[1]:end], -1) {
			r := formRow{code: formBytes(t, m[2]), test: m[4] == "1", step: int(m[5][0] - '0'), tail: m[6] == "1"}
			r.mask = slices.Repeat([]byte{0xff}, len(r.code))
			if strings.HasPrefix(m[3], "{") {
				r.mask = formBytes(t, strings.Trim(m[3], "{} "))
			}
			if len(r.code) != int(m[1][0]-'0') || len(r.mask) != len(r.code) {
				t.Fatalf("a row of other lengths: %s", m[0])
			}
			rows = append(rows, r)
		}
		return rows
	}
	t.Fatalf("include/sdt_forms.h has no part for %s", machine)
	return nil
}

func formBytes(t *testing.T, list string) []byte {
	t.Helper()
	var b []byte
	for _, word := range strings.Split(list, ",") {
		if word = strings.TrimSpace(word); word == "SDT_X" {
			word = "0xff"
		}
		b = append(b, byte(expect.Value(strconv.ParseUint(word, 0, 8))(t)))
	}
	return b
}
