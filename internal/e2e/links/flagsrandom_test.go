package links

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"sdtconvert/internal/testkit/disk"
	"sdtconvert/internal/testkit/toolchains"
	"sdtconvert/internal/testkit/tools"
)

// everyMachine are options that change what a call does, or the code around one, on all machines.
// A name before a colon is that of the one compiler that knows the options after it.
var everyMachine = []string{
	"-fno-pic", "-fPIC", "-fno-plt", "-fno-plt -fPIC", "-fomit-frame-pointer", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls",
	"-fstack-protector-all", "-fstack-protector-strong", "-fstack-clash-protection", "-ffunction-sections", "-fexceptions -fnon-call-exceptions",
	"-fno-asynchronous-unwind-tables", "-finstrument-functions", "-fpatchable-function-entry=4,2", "-fno-common -fno-jump-tables",
	"-ftrapv", "-fwrapv", "-fno-semantic-interposition -fPIC", "-fzero-call-used-regs=all", "-ftrivial-auto-var-init=pattern", "-fno-align-functions",
	"gcc:-fstack-check", "gcc:-fno-caller-saves", "gcc:-fno-ipa-ra", "gcc:-fno-defer-pop", "gcc:-fno-shrink-wrap", "gcc:-freorder-blocks-and-partition",
	"gcc:-fconserve-stack", "gcc:-fno-function-cse", "gcc:-fharden-compares -fharden-conditional-branches", "gcc:-fno-schedule-insns2",
	"gcc:-fselective-scheduling2", "gcc:-fno-reorder-blocks", "gcc:-fira-region=all", "gcc:-fno-split-wide-types", "gcc:-fnon-call-exceptions",
	"gcc:-fno-combine-stack-adjustments", "gcc:-fno-cprop-registers", "gcc:-fsched-pressure", "gcc:-fprofile-arcs -ftest-coverage",
	"clang:-mllvm -enable-machine-outliner", "clang:-fsplit-machine-functions", "clang:-fno-integrated-as", "clang:-mllvm -verify-machineinstrs",
	"clang:-fsanitize=undefined -fsanitize-trap=all", "clang:-fsanitize=signed-integer-overflow -fsanitize-minimal-runtime -fsanitize-trap=all",
	"clang:-mspeculative-load-hardening", "clang:-mno-implicit-float", "clang:-mllvm -enable-shrink-wrap=true", "clang:-funwind-tables=1",
}

// ofMachine are those of one machine.
var ofMachine = map[*toolchains.Machine][]string{
	toolchains.AMD64: {
		"-mno-red-zone", "-mharden-sls=all", "-mstackrealign", "-fcf-protection=full", "-fcf-protection=none", "-mcmodel=medium", "-mcmodel=large",
		"-fsplit-stack", "-mavx2 -mvzeroupper", "-mtls-dialect=gnu2", "-momit-leaf-frame-pointer",
		"gcc:-mindirect-branch=thunk", "gcc:-mindirect-branch=thunk-inline -mindirect-branch-register", "gcc:-mfunction-return=thunk",
		"gcc:-mfunction-return=thunk-inline", "gcc:-mindirect-branch-cs-prefix", "gcc:-maccumulate-outgoing-args", "gcc:-mno-push-args",
		"gcc:-mpreferred-stack-boundary=3", "gcc:-mpreferred-stack-boundary=5", "gcc:-mcall-ms2sysv-xlogues", "gcc:-mforce-drap", "gcc:-mskip-rax-setup",
		"gcc:-mmanual-endbr -fcf-protection", "gcc:-mshstk", "gcc:-mno-direct-extern-access -fPIC", "gcc:-mstack-protector-guard=global -fstack-protector-all",
		"gcc:-mcld", "gcc:-minline-all-stringops", "gcc:-fno-plt -mindirect-branch=thunk",
		"clang:-mspeculative-load-hardening -mno-red-zone", "clang:-mspeculative-load-hardening -fno-plt", "clang:-mspeculative-load-hardening -fPIC",
		"clang:-mspeculative-load-hardening -mretpoline", "clang:-mspeculative-load-hardening -mllvm -x86-slh-fence-call-and-ret",
		"clang:-mspeculative-load-hardening -mllvm -x86-slh-loads=0",
		"clang:-mlvi-hardening", "clang:-mlvi-cfi", "clang:-mseses", "clang:-mretpoline", "clang:-mstack-alignment=32",
		"clang:-mllvm -x86-pad-for-align=1", "clang:-mbranches-within-32B-boundaries", "clang:-fbasic-block-sections=all", "clang:-fcf-protection=branch -mibt-seal",
	},
	toolchains.I386: {
		"-mregparm=3", "-mstackrealign", "-fcf-protection=full", "-march=i386", "-march=pentium4",
		"-fsplit-stack", "-mno-sse", "-mharden-sls=all",
		"gcc:-maccumulate-outgoing-args", "gcc:-mno-accumulate-outgoing-args", "gcc:-mno-push-args", "gcc:-mpreferred-stack-boundary=2", "gcc:-mpreferred-stack-boundary=4",
		"gcc:-mpreferred-stack-boundary=2 -mno-accumulate-outgoing-args", "gcc:-maccumulate-outgoing-args -fno-omit-frame-pointer", "gcc:-mno-accumulate-outgoing-args -fomit-frame-pointer",
		"gcc:-mforce-drap", "gcc:-mindirect-branch=thunk", "gcc:-mfunction-return=thunk", "gcc:-msseregparm -msse2", "gcc:-mcld",
		"clang:-mstack-alignment=4", "clang:-mretpoline", "clang:-mlvi-cfi", "clang:-mno-push-args", "clang:-mllvm -no-x86-call-frame-opt",
	},
	toolchains.ARM64: {
		"-mbranch-protection=standard", "-mbranch-protection=pac-ret+leaf+b-key", "-mbranch-protection=bti", "-mharden-sls=all", "-mcmodel=tiny", "-mcmodel=large -fno-pic",
		"-mno-outline-atomics", "-mstrict-align", "-ffixed-x18", "-momit-leaf-frame-pointer", "-mno-omit-leaf-frame-pointer", "-ffixed-x18 -fsanitize=shadow-call-stack",
		"-mfix-cortex-a53-835769", "gcc:-mtrack-speculation", "gcc:-mtrack-speculation -fPIC -fno-omit-frame-pointer", "gcc:-mlow-precision-div", "gcc:-mpc-relative-literal-loads",
		"gcc:-msve-vector-bits=scalable -march=armv8.2-a+sve", "clang:-mspeculative-load-hardening -fPIC", "clang:-mspeculative-load-hardening -fno-optimize-sibling-calls",
		"clang:-mspeculative-load-hardening -mllvm -aarch64-slh-loads=0", "clang:-fcall-saved-x18", "clang:-mtls-size=12", "clang:-moutline",
	},
	toolchains.ARM: {
		"-marm", "-mthumb", "-mlong-calls", "-mthumb -mlong-calls", "-mpoke-function-name", "-mapcs-frame", "-mtpcs-frame -mthumb", "-mthumb -mrestrict-it", "-mword-relocations",
		"-mharden-sls=all", "-march=armv5te -marm -mfloat-abi=soft", "-mno-unaligned-access", "-mtp=soft", "-mthumb -mslow-flash-data",
		"gcc:-mno-sched-prolog", "gcc:-msingle-pic-base -fPIC", "gcc:-mno-pic-data-is-text-relative -fPIC", "gcc:-mrestrict-it -mthumb", "gcc:-mpure-code -mthumb", "gcc:-mneon-for-64bits",
		"clang:-mexecute-only -mthumb", "clang:-mno-movt", "clang:-moutline -mthumb", "clang:-mframe-chain=aapcs", "clang:-ffixed-r9",
	},
	toolchains.RISCV64: {
		"-mno-relax", "-mcmodel=medlow", "-mcmodel=medany", "-mstrict-align", "-msave-restore", "-march=rv64imafd", "-mno-save-restore",
		"gcc:-mno-plt", "gcc:-mno-plt -fPIC", "gcc:-mpreferred-stack-boundary=5", "gcc:-mshorten-memrefs", "gcc:-mno-explicit-relocs", "gcc:-msmall-data-limit=0",
		"clang:-ffixed-x18 -fsanitize=shadow-call-stack", "clang:-mcmodel=medany -fno-pic", "clang:-moutline",
	},
	toolchains.S390X: {
		"-mbackchain", "-mpacked-stack", "-march=z10", "-march=z13", "-march=z15",
		"gcc:-mbackchain -mpacked-stack -msoft-float", "gcc:-mhotpatch=1,2", "gcc:-mindirect-branch=thunk", "gcc:-mfunction-return=thunk", "gcc:-mindirect-branch=thunk-inline",
		"gcc:-mindirect-branch-call=thunk -mindirect-branch-table", "gcc:-mno-pic-data-is-text-relative -fPIC", "gcc:-mstack-size=65536 -mstack-guard=256", "gcc:-mstack-size=65536",
		"gcc:-msmall-exec", "gcc:-mwarn-dynamicstack", "gcc:-mfentry",
	},
	toolchains.PPC64LE: {
		"-mlongcall", "-mcmodel=small", "-mcmodel=medium", "-mcmodel=large", "-mcpu=power10", "-mcpu=power10 -mrop-protect", "-mcpu=power8 -mrop-protect", "-mcpu=power10 -mno-pcrel",
		"-mcpu=power10 -fPIC", "-msecure-plt", "gcc:-mlongcall -mno-pltseq", "gcc:-mprofile-kernel -pg", "gcc:-mno-speculate-indirect-jumps", "gcc:-msave-toc-indirect", "gcc:-mtraceback=full",
		"gcc:-mminimal-toc", "gcc:-mcpu=power10 -mprivileged -mrop-protect", "gcc:-mno-sched-epilog", "gcc:-mno-prologue",
	},
	toolchains.PPC64: {
		"-mlongcall", "-mcmodel=small", "-mcmodel=medium", "-mcmodel=large", "-mcpu=power8", "gcc:-mlongcall -mno-pltseq", "gcc:-mno-speculate-indirect-jumps", "gcc:-msave-toc-indirect",
		"gcc:-mtraceback=full", "gcc:-mminimal-toc", "gcc:-mno-pointers-to-nested-functions",
	},
}

// refusals are what the message of a refusal has for options that change how stubs are called.
var refusals = map[string]string{
	"-fno-plt": "register", "-mcmodel=large": "large", "-mlong-calls": "call", "-mlongcall": "call", "-mno-plt": "compile", "-mspeculative-load-hardening": "-mspeculative-load-hardening",
	"-msmall-exec": "16 bits", "-mpure-code": "call", "-mexecute-only": "call", "-mslow-flash-data": "call", "-mfunction-return": "thunk", "-mindirect-branch": "thunk",
}

// flagCase is a machine, a compiler and an option.
type flagCase struct {
	machine *toolchains.Machine
	cc      toolchains.Compiler
	flags   string
}

func (c *flagCase) name() string {
	cc := "gcc"
	if c.cc.Clang {
		cc = "clang"
	}
	return strings.Join([]string{c.machine.Name, cc, c.flags}, " ")
}

// flagCases returns all of them, in the same order each time.
func flagCases() (all []flagCase) {
	for _, m := range toolchains.Machines {
		for _, option := range append(slices.Clone(everyMachine), ofMachine[m]...) {
			only, flags, ok := strings.Cut(option, ":")
			if !ok {
				only, flags = "", option
			}
			for _, cc := range []toolchains.Compiler{toolchains.GCC, toolchains.Clang} {
				if only == "" || (only == "clang") == cc.Clang {
					if m != toolchains.PPC64 || !cc.Clang { // for which clang has no headers
						all = append(all, flagCase{m, cc, flags})
					}
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(1, 1))
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// outcomes counts what has become of the programs of each case.
type outcomes struct {
	sync.Mutex
	of map[string]*[outcomeKinds]int
}

const (
	same    = iota // runs as its twin
	refused        // with a message that the option explains
	unknown        // to the compiler, or the twin neither links nor runs
	outcomeKinds
)

func (o *outcomes) add(c *flagCase, outcome int) {
	o.Lock()
	defer o.Unlock()
	if o.of[c.name()] == nil {
		o.of[c.name()] = new([outcomeKinds]int)
	}
	o.of[c.name()][outcome]++
}

// TestRandomFlags compiles random programs with options that change calls, for all machines, and
// runs what converts beside its twin.
func TestRandomFlags(t *testing.T) {
	const usual = 24
	cases := flagCases()
	results := &outcomes{of: map[string]*[outcomeKinds]int{}}
	t.Run("programs", func(t *testing.T) {
		for seed := range tools.Cases(t, usual) {
			c := cases[seed%len(cases)]
			t.Run(fmt.Sprint(seed, " ", c.name()), func(t *testing.T) {
				t.Parallel()
				c.machine.Need(t)
				tools.Need(t, c.machine.CC(c.cc)[0])
				results.add(&c, checkFlags(t, uint64(seed), &c))
			})
		}
	})
	if testing.Verbose() {
		for _, name := range slices.Sorted(maps.Keys(results.of)) {
			n := results.of[name]
			t.Logf("%s: %d as their twins, %d refused, %d unknown", name, n[same], n[refused], n[unknown])
		}
	}
}

// checkFlags makes one program, and says what has become of it.
func checkFlags(t *testing.T, seed uint64, c *flagCase) int {
	r := rand.New(rand.NewPCG(seed, 11))
	p := randomProgram{Rand: r, nine: true}
	directory := t.TempDir()
	source := filepath.Join(directory, "program.c")
	disk.Write(t, source, p.source())
	level := []string{"-O0", "-O1", "-O2", "-O3", "-Os"}[r.IntN(5)]
	words := append([]string{level, "-w", "-g0"}, strings.Fields(c.flags)...)
	compile := func(out, in string, more ...string) error {
		cc := c.machine.CC(c.cc)
		_, err := tools.Try(cc[0], slices.Concat(cc[1:], words, more, []string{"-c", "-o", out, in})...)
		return err
	}
	object, support := filepath.Join(directory, "program.o"), filepath.Join("testdata", "options.c")
	stubs, probes := filepath.Join(directory, "stubs.o"), filepath.Join(directory, "probes.o")
	if compile(object, source) != nil || compile(stubs, support, "-DSTUBS") != nil || compile(probes, support) != nil {
		return unknown
	}
	counter := func(flags ...string) string {
		out, gcc := filepath.Join(directory, "counter"+strings.Join(flags, "")+".o"), c.machine.CC(toolchains.GCC)
		tools.Must(t, gcc[0], slices.Concat(gcc[1:], flags, []string{"-O1", "-c", "-o", out, filepath.Join("testdata", "armed.c")})...)
		return out
	}
	run := func(name string, objects ...string) (string, error) {
		exe, gcc := filepath.Join(directory, name), c.machine.CC(toolchains.GCC)
		link := []string{"-static", "-o", exe}
		if c.machine == toolchains.RISCV64 {
			link = append(link, "-Wl,--no-relax") // which needs gp, where a shadow call stack may be
		}
		for _, runtime := range []string{"-fprofile-arcs", "-fsplit-stack", "-pg"} {
			if strings.Contains(c.flags, runtime) {
				link = append(link, runtime)
			}
		}
		if out, err := tools.Try(gcc[0], slices.Concat(gcc[1:], link, objects)...); err != nil {
			return out, err
		}
		command := c.machine.Command(exe)
		return tools.Try(command[0], command[1:]...)
	}
	counted, err := run("twin", object, stubs, counter("-DSTUBS"))
	want, _, ok := strings.Cut(counted, "counts\n")
	if err != nil || !ok {
		t.Logf("the twin does not run: %v %s", err, tools.Shortened(counted))
		return unknown
	}
	converted := filepath.Join(directory, "converted.o")
	options := []string{"-o", converted, "--no-stapsdt"}
	if r.IntN(2) == 0 {
		options[2] = "--stapsdt"
	}
	if out, err := tools.Try(converter, append(tools.RecordsAlone(options...), object)...); err != nil {
		for option, reason := range refusals {
			if strings.Contains(c.flags, option) && strings.Contains(out, reason) {
				return refused
			}
		}
		t.Errorf("%s: %v\n%s", level, err, out)
		return refused
	}
	got, err := run("converted", converted, probes)
	if err != nil || got != want {
		t.Errorf("%s: %v: it prints\n%s\nand its twin\n%s", level, err, got, want)
	}
	// Armed, each site is reached as often as its stub is called.
	tools.Must(t, converter, append(tools.RecordsAlone("-o", converted, "--no-stapsdt"), object)...)
	if got, err := run("armed", converted, probes, counter()); err != nil || got != counted {
		t.Errorf("%s: %v: armed, it prints\n%s\nand its twin\n%s", level, err, got, counted)
	}
	return same
}
