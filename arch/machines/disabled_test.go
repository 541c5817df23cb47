package machines_test

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"sdtconvert/arch"
	"sdtconvert/elfreloc"
	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/expect"
	"sdtconvert/internal/testkit/tools"
)

// disable disables a site between fillers, as a case says.
func (s *siteCase) disable(t *testing.T, m arch.Machine, d *disabledCase, filler []byte) (arch.Text, arch.Change, error) {
	t.Helper()
	text, off := placed(slices.Concat(s.code, d.near), filler)
	text = s.mapped(text)
	site := expect.Value(m.Decode(text, s.at(off)))(t, "%s", s.name)
	env := d.env
	env.Reloc, env.Text = s.relocs[0].Type, text
	if d.near != nil {
		r := d.nearReloc
		r.Offset += off + uint64(len(s.code))
		env.Returns = []elfreloc.Relocation{r}
	}
	change, err := m.Disable(site, d.kind, env)
	text.Code = bytes.Clone(text.Code)
	copy(text.Code[off-text.Start:], change.New)
	return text, change, err
}

// eachDisabled calls check with each disabled form, between fillers.
func eachDisabled(t *testing.T, check func(t *testing.T, m arch.Machine, s *siteCase, d *disabledCase, text arch.Text, c arch.Change)) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		for _, s := range c.sites {
			for _, d := range s.disabled {
				for _, filler := range fillers {
					text, change, err := s.disable(t, m, d, filler)
					if d.error != "" {
						if !errors.As(err, new(*arch.Refusal)) || err.Error() != d.error {
							t.Errorf("%s: got %v, want %s", d.name, err, d.error)
						}
					} else if err != nil {
						t.Errorf("%s: %v", d.name, err)
					} else {
						check(t, m, s, d, text, change)
					}
				}
			}
		}
	})
}

func TestDisabledForms(t *testing.T) {
	eachDisabled(t, func(t *testing.T, m arch.Machine, s *siteCase, d *disabledCase, text arch.Text, c arch.Change) {
		off := c.Site.Offset
		want := arch.Change{
			Site: arch.Site{Offset: off, Form: s.form, GOT: s.got, Code: s.code},
			New:  d.code, RecordedOffset: off + d.record, Target: d.target, Reloc: d.reloc,
		}
		if d.target != arch.TargetNone {
			want.Reloc.Offset += off
		}
		if d.low != nil {
			want.Low = &elfreloc.Relocation{Offset: d.low.Offset + off, Type: d.low.Type, Addend: d.low.Addend}
		}
		expect.Equal(t, want, c, "%s", d.name)
		expect.Equal(t, len(s.code), len(c.New), "%s", d.name)
		expect.Equal(t, d.asm, asm(m, c.New), "%s", d.name)
		sizes := m.Traits().Sizes
		if n := uint64(len(c.New)); n > sizes.Site || d.record > sizes.Skip {
			t.Errorf("%s: %d bytes with the record at %d do not fit %+v", d.name, n, d.record, sizes)
		}
	})
}

// Each site has a disabled form of each kind, or says why there is none, and one that is
// armable of probe calls; with the return thunk, where the machine has one, each that
// returns; and of is-enabled tests one for each length of a semaphore.
func TestDisabledFormsAreComplete(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		has := map[string]bool{}
		for _, s := range c.sites {
			for _, d := range s.disabled {
				has[fmt.Sprint(s.name, d.kind, d.env.ReturnThunk, d.env.Armable, d.env.SemaphoreBytes)] = true
			}
		}
		helper := false
		for _, s := range c.sites {
			for k := range arch.Kinds {
				for _, returns := range []bool{false, true} {
					if returns && (m.Traits().ReturnThunk.Symbol == "" || s.form == arch.Call || s.form == arch.Nop) {
						continue
					}
					if !has[fmt.Sprint(s.name, k, returns, false, 0)] {
						t.Errorf("%s has no case as %s, return thunk %v", s.name, arch.Describe(k, s.form), returns)
					}
				}
			}
			if !has[fmt.Sprint(s.name, arch.Probe, false, true, 0)] {
				t.Errorf("%s has no case as an armable probe call", s.name)
			}
			for _, n := range []int{2, 4} {
				if s.form != arch.Nop && !has[fmt.Sprint(s.name, arch.Enabled, false, false, n)] {
					t.Errorf("%s has no case as a test of a semaphore of %d bytes", s.name, n)
				}
			}
			helper = helper || slices.ContainsFunc(s.disabled, func(d *disabledCase) bool { return d.target == arch.TargetHelper || d.target == arch.TargetTestHelper })
		}
		expect.Equal(t, m.Traits().HelperAlign != 0, helper, "helpers are used, and aligned to %d", m.Traits().HelperAlign)
	})
}

func TestDisabledFormsAreRecognised(t *testing.T) {
	eachDisabled(t, func(t *testing.T, m arch.Machine, s *siteCase, d *disabledCase, text arch.Text, c arch.Change) {
		form := s.form
		if form == arch.Nop {
			form = arch.Call // nothing tells them apart any more
		}
		for _, in := range []arch.Text{text, {Code: text.Code, Start: text.Start}, {Code: c.New, Start: c.Site.Offset}} {
			got, ok := m.Disabled(in, c.RecordedOffset, d.kind)
			if !ok || got.Offset != c.Site.Offset || got.Form != form || got.GOT != s.got || !bytes.Equal(got.Code, c.New) {
				t.Errorf("%s: read back as %+v, %v", d.name, got, ok)
			}
			_, jumps := m.Branch(in, c.RecordedOffset)
			if !jumps && d.target != arch.TargetNone && d.target != arch.TargetSemaphore {
				t.Errorf("%s: goes elsewhere, and Branch does not tell where", d.name)
			}
			if !jumps {
				for other := range arch.Kinds {
					if got, ok := m.Disabled(in, c.RecordedOffset, other); ok && other != d.kind {
						t.Errorf("%s: taken for %s", d.name, arch.Describe(other, got.Form))
					}
				}
				if m.Live(in, c.RecordedOffset) {
					t.Errorf("%s: taken for a call or a jump", d.name)
				}
			} else if d.target == arch.TargetNone || d.target == arch.TargetSemaphore {
				t.Errorf("%s: taken for a jump", d.name)
			}
		}
	})
}

func TestDisabledFormsThatAreCutOff(t *testing.T) {
	eachDisabled(t, func(t *testing.T, m arch.Machine, s *siteCase, d *disabledCase, text arch.Text, c arch.Change) {
		short := arch.Text{Code: c.New[:len(c.New)-1], Start: c.Site.Offset}
		if got, ok := m.Disabled(short, c.RecordedOffset, d.kind); ok && len(got.Code) >= len(c.New) {
			t.Errorf("%s is recognised without its last byte", d.name)
		}
	})
}

// With any breakpoint over its first bytes, a site is neither disabled nor live.
func TestBreakpointsHideSites(t *testing.T) {
	eachDisabled(t, func(t *testing.T, m arch.Machine, s *siteCase, d *disabledCase, text arch.Text, c arch.Change) {
		for _, b := range m.Traits().Breakpoints {
			armed := text
			armed.Code = bytes.Clone(text.Code)
			copy(armed.Code[c.RecordedOffset-text.Start:], b)
			if got, ok := m.Disabled(armed, c.RecordedOffset, d.kind); ok {
				t.Errorf("%s with % x over it is taken for %s", d.name, b, arch.Describe(d.kind, got.Form))
			}
			if m.Live(armed, c.RecordedOffset) {
				t.Errorf("%s with % x over it is live", d.name, b)
			}
		}
	})
}

// Where the semaphore is loaded at a site, Load reads it there, and nowhere else.
func TestDisabledFormsThatLoad(t *testing.T) {
	eachDisabled(t, func(t *testing.T, m arch.Machine, s *siteCase, d *disabledCase, text arch.Text, c arch.Change) {
		if _, ok := m.LoadedSemaphore(text, c.RecordedOffset); ok != (d.target == arch.TargetSemaphore) {
			t.Errorf("%s loads a semaphore: %v", d.name, ok)
		}
	})
}

// The nop that is marked is what a call becomes, armable or not, or one that stays as it is.
func TestNopsAreDisabledCalls(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		var calls, nops, kept []string
		for _, s := range c.sites {
			for _, d := range s.disabled {
				switch {
				case d.kind != arch.Probe || s.got || d.env.ReturnThunk:
				case s.form == arch.Call:
					calls = append(calls, asm(m, d.code))
				case s.form == arch.Nop:
					nops = append(nops, asm(m, s.code), asm(m, d.code))
					if d.env.Armable && bytes.Equal(d.code, s.code) {
						kept = append(kept, asm(m, s.code))
					}
				}
			}
		}
		for _, call := range calls {
			if !slices.Contains(nops, call) {
				t.Errorf("no nop is marked that is a call's: %s", call)
			}
		}
		for _, nop := range nops {
			if !slices.Contains(calls, nop) && !slices.Contains(kept, nop) {
				t.Errorf("a nop is marked that is no call's: %s", nop)
			}
		}
		if nops == nil {
			t.Error("no nop is marked")
		}
	})
}

// A site that was not converted is not a disabled one, but where disabled forms jump too, as
// those of is-enabled tests do, and where nothing is to be disabled.
func TestSitesAreNotDisabled(t *testing.T) {
	eachOrder(t, func(t *testing.T, m arch.Machine, c *cases) {
		for _, s := range c.sites {
			text, off := placed(s.code, fillers[1])
			if s.form == arch.Nop {
				continue
			}
			_, jumps := m.Branch(text, off)
			for k := range arch.Kinds {
				if jumps && (k == arch.Enabled || s.form == arch.Tail) {
					continue
				}
				for record := off; record < off+uint64(len(s.code)); record++ {
					if got, ok := m.Disabled(text, record, k); ok {
						t.Errorf("%s at %d is taken for %s", s.name, record-off, arch.Describe(k, got.Form))
					}
				}
			}
		}
	})
}

// alike returns the disabled forms of a site and of all sites that differ from it in one byte,
// which are those with other conditions and registers.
func (s *siteCase) alike(m arch.Machine) (forms [arch.Kinds][][]byte) {
	for i := range s.code {
		for b := range 256 {
			code := bytes.Clone(s.code)
			code[i] = byte(b)
			site, err := m.Decode(s.mapped(arch.Text{Code: code}), s.relocs)
			if err != nil {
				continue
			}
			for _, d := range s.disabled {
				env := d.env
				env.Reloc = s.relocs[0].Type
				if c, err := m.Disable(site, d.kind, env); err == nil {
					forms[d.kind] = append(forms[d.kind], c.New)
				}
			}
		}
	}
	return forms
}

// Of random bytes, and of pieces of disabled forms in any order, only whole forms are
// recognised, and what goes elsewhere or loads a semaphore.
func TestDisabledIsNotRandomBytes(t *testing.T) {
	each(t, func(t *testing.T, m arch.Machine, c *cases) {
		var parts [][]byte
		known := [arch.Kinds]map[string]bool{{}, {}}
		for _, s := range c.sites {
			for k, forms := range s.alike(m) {
				for _, form := range forms {
					known[k][string(form)] = true
				}
			}
			for _, d := range s.disabled {
				for i := range d.code {
					parts = append(parts, d.code[i:], d.code[:i])
				}
			}
		}
		isForm := func(k arch.Kind, code []byte) bool {
			text := hex.EncodeToString(code)
			return known[k][string(code)] || slices.ContainsFunc(c.forms[k], func(form *regexp.Regexp) bool { return form.MatchString(text) })
		}
		r := rand.New(rand.NewPCG(1, 2))
		found := 0
		for range 200_000 {
			var code []byte
			for range 1 + r.IntN(3) {
				code = append(code, parts[r.IntN(len(parts))]...)
			}
			if r.IntN(2) == 0 && len(code) > 0 {
				code[r.IntN(len(code))] = byte(r.Uint32())
			}
			text, record, k := arch.Text{Code: code}, uint64(r.IntN(len(code)+2)), arch.Kind(r.IntN(int(arch.Kinds)))
			got, ok := m.Disabled(text, record, k)
			if !ok || leaves(m, text, got) {
				continue
			}
			if found++; !isForm(k, got.Code) {
				t.Fatalf("% x at %d is taken for %s: %s", code, record, arch.Describe(k, got.Form), asm(m, got.Code))
			}
		}
		if found < 100 {
			t.Errorf("only %d forms among all these bytes", found)
		}
	})
}

// leaves reports whether a disabled form jumps, or loads a semaphore.
func leaves(m arch.Machine, text arch.Text, site arch.Site) bool {
	for i := range site.Code {
		at := site.Offset + uint64(i)
		_, jumps := m.Branch(text, at)
		_, loads := m.LoadedSemaphore(text, at)
		if jumps || loads {
			return true
		}
	}
	return false
}

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
