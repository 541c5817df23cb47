package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"sdtconvert/internal/listing"
	"sdtconvert/internal/message"
	"sdtconvert/internal/provider"
	"sdtconvert/internal/provider/systems"
	"sdtconvert/internal/sites"
	"sdtconvert/internal/trace"
	"sdtconvert/internal/trace/events"
	"sdtconvert/internal/trace/probe"
)

// The flags of trace.
var (
	tracePIDOption = &option{name: "pid", letter: "p", value: "PID",
		help: "trace a process that runs; may be repeated"}
	traceTypesOption = &option{name: "types", letter: "s", value: "FILE.d", complete: completeFile,
		help: "a provider file, or its text, with the types and names of arguments; may be repeated"}
	traceFollowOption = &option{name: "follow", letter: "f",
		help: "trace child processes too, also those that -p has already, and the programs that they and a process become"}
	traceCountOption = &option{name: "count", letter: "c",
		help: "only count hits, by probe and function"}
	traceByOption = &option{name: "by", value: "KEY[,KEY]",
		help: "with -c, --hist, --lhist and --between, count by these: an argument, tid, pid, provider, module, function, name"}
	traceHistOption = &option{name: "hist", value: "ARG",
		help: "draw a histogram of an argument (arg0 is the first), by powers of two"}
	traceLinearOption = &option{name: "lhist", value: "ARG,LOW,HIGH,WIDTH",
		help: "draw a histogram of an argument, by ranges of one width"}
	traceBetweenOption = &option{name: "between", value: "PROBE,PROBE",
		help: "draw a histogram of the time from one probe to another of the same thread, or with --format perfetto a slice for each"}
	tracePairOption = &option{name: "pair", value: "KEY[,KEY]",
		help: "with --between, hits belong together that agree in these, whatever their threads"}
	traceEveryOption = &option{name: "every", value: "TIME",
		help: "with -c, --hist, --lhist and --between, write what was counted so far after each TIME"}
	traceClearOption = &option{name: "clear",
		help: "with --every, begin anew each time"}
	traceOutputOption = &option{name: "output", letter: "o", value: "PATH", complete: completeFile,
		help: "write there, and not to standard output"}
	traceFormatOption = &option{name: "format", value: "FORMAT",
		help: "text, a line for each hit; json, a line of JSON; ctf, a new directory in CTF 1.8, for babeltrace2 and Trace Compass; perfetto, JSON for ui.perfetto.dev"}
	traceFilterOption = &option{name: "filter", value: "FILTER",
		help: "only events for which FILTER is true: comparisons of arguments (argN or a name), tid, pid, provider, module, function and name with numbers and strings, ~ with a glob, with && || ! and parentheses"}
	traceMangledOption = &option{name: "no-demangle",
		help: "show functions of C++ and Rust by the names of their symbols"}
	traceMostOption = &option{name: "events", letter: "n", value: "N",
		help: "stop tracing after N events"}
	traceForOption = &option{name: "for", value: "TIME",
		help: "stop tracing after TIME: 10s, 2m"}
	traceRequireOption = &option{name: "require", value: "PROBE",
		help: "exit with 1 if no probe that matches has fired; may be repeated"}
	traceNoneOption = &option{name: "allow-none",
		help: "do not fail if no probe matches a PROBE, or a comparison of --filter is never true"}
	traceTrapsOption = &option{name: "breakpoints",
		help: "arm all sites by breakpoints, which stop the program at each hit"}
	traceNoTrapsOption = &option{name: "no-breakpoints",
		help: "leave sites alone at which the program would stop"}
)

// traceCommand traces programs.
var traceCommand = &command{
	name: "trace", synopsis: "trace [flags] [PROBE...] -- PROGRAM ARGUMENT...", brief: "show the probes of a program as they fire (Linux)",
	usage: []string{"sdtconvert trace [flags] [PROBE...] -- PROGRAM ARGUMENT...", "sdtconvert trace [flags] -p PID [PROBE...]"},
	text: `Runs a program, or attaches to one that runs, and prints a line for each hit of its
probes: the time, the thread, provider:module:function:name and the arguments. It needs
no root, and the program needs no library and runs on while it is traced. Statistics go
to standard error. Ctrl-C ends tracing of a process that was attached to; a program that
was started gets it.`,
	groups: []group{
		{title: "What is traced", options: []*option{
			{head: "PROBE", help: "provider:module:function:name, each a glob; parts on the left may be missing. Without any, all probes"},
			tracePIDOption, traceFollowOption, traceFilterOption, traceTypesOption, traceTrapsOption, traceNoTrapsOption,
		}},
		{title: "What is written", options: []*option{
			traceCountOption, traceByOption, traceHistOption, traceLinearOption, traceBetweenOption, tracePairOption, traceEveryOption, traceClearOption, traceOutputOption, traceFormatOption, traceMangledOption,
		}},
		{title: "When it ends", options: []*option{traceMostOption, traceForOption, traceRequireOption, traceNoneOption}},
	},
	after: "Colour is used on a terminal unless NO_COLOR is set.",
	exit:  "the program's, also if a signal ends it; 0 for a process that was attached to; 1 it could not be traced, a probe was not there, or a required one has not fired, 2 the command line is wrong.",
	new:   func() invocation { return &traceFlags{} },

	wrapped: "the program",
}

// traceFlags are the flags of trace.
type traceFlags struct {
	set                                   *flagSet
	pids, types                           []string
	follow, count, traps, noTraps         bool
	allowNone, mangled                    bool
	hist, linear, between, output, format string
	filter, limit, by, pair, every        string
	clear                                 bool
	most                                  int
	required                              []string
	requiredPatterns                      []listing.Pattern
	declared                              map[string]bool // providers of -s
}

func (f *traceFlags) bindFlags(s *flagSet) {
	f.set = s
	s.SetInterspersed(true) // up to --
	s.bind("pid", &f.pids)
	s.bind("types", &f.types)
	s.bind("follow", &f.follow)
	s.bind("count", &f.count)
	s.bind("by", &f.by)
	s.bind("hist", &f.hist)
	s.bind("lhist", &f.linear)
	s.bind("between", &f.between)
	s.bind("pair", &f.pair)
	s.bind("every", &f.every)
	s.bind("clear", &f.clear)
	s.bind("output", &f.output)
	s.bind("format", &f.format)
	s.bind("filter", &f.filter)
	s.bind("events", &f.most)
	s.bind("for", &f.limit)
	s.bind("require", &f.required)
	s.bind("allow-none", &f.allowNone)
	s.bind("no-demangle", &f.mangled)
	s.bind("breakpoints", &f.traps)
	s.bind("no-breakpoints", &f.noTraps)
}

// run traces.
func (f *traceFlags) run(p *program, args []string) (failed bool, err error) {
	o, err := f.options(args)
	if err != nil {
		return false, err
	}
	keeper, isTracer := p.keeper()
	if !isTracer {
		if status, ok := p.keepTracer(); ok {
			return false, &statusError{status: p.End(status)}
		}
	}
	file := &events.File{Path: f.output}
	out := bufio.NewWriterSize(p.Stdout, 64<<10)
	w := io.Writer(out)
	switch {
	case f.output != "":
		out = bufio.NewWriterSize(file, 64<<10)
		w = out
	case isTerminal(p.Stdout):
		w = p.Stdout
	}
	if o.Sink, err = f.sink(p, w); err != nil {
		return false, err
	}
	o.Head = func(at time.Time) { fmt.Fprintln(w, at.Format(time.TimeOnly)) }
	o.Warn = func(err error) { message.Warning(p.Stderr, err) }
	o.Listing.Places.Warn = func(error) {} // of debug information, which is not read
	o.Environ, o.Files = p.Environ, []uintptr{descriptor(p.Stdin, 0), descriptor(p.Stdout, 1), descriptor(p.Stderr, 2)}
	o.Signalled = p.traceRequests(len(o.Program) > 0, keeper)
	statistics, err := trace.Run(*o)
	if err != nil && statistics == nil {
		for _, line := range o.Census.Unmatched() {
			message.Line(p.Stderr, "sdtconvert: %s", line)
		}
		return false, err
	}
	err = errors.Join(err, out.Flush(), file.Close())
	if errors.Is(err, syscall.EPIPE) {
		err = nil // the reader has closed the pipe, such as head
	}
	printStatistics(p.Stderr, statistics)
	return f.end(p, o, statistics, err)
}

// options checks a command line that was parsed.
func (f *traceFlags) options(args []string) (*trace.Options, error) {
	names := conversionFlags{}
	names.bindFlags(newFlagSet(listCommand, flagless(nil)))
	o := &trace.Options{Follow: f.follow, Traps: f.traps, NoTraps: f.noTraps, Mangled: f.mangled, Most: uint64(f.most), Census: &probe.Census{}}
	o.Listing.Conventions = sites.Conventions{Names: names.patch.Names, ProbePrefix: names.patch.ProbePrefix}
	var err error
	if o.Listing.Layouts, err = listedLayouts("", ""); err != nil {
		return nil, err
	}
	probes := args
	if dash := f.set.ArgsLenAtDash(); dash >= 0 {
		probes, o.Program = args[:dash], args[dash:]
	}
	if err := f.parseProbes(o, probes); err != nil {
		return nil, usageError{err}
	}
	for _, text := range f.pids {
		pid := 0
		if _, err := fmt.Sscanf(text+" ", "%d ", &pid); err != nil || pid <= 0 {
			return nil, usagef("--pid %s is not a process", text)
		}
		o.PIDs = append(o.PIDs, pid)
	}
	switch {
	case len(o.PIDs) == 0 && len(o.Program) == 0 && len(probes) > 0:
		return nil, usagef("missing -- before the program, or -p PID: write sdtconvert trace -- %s", strings.Join(probes, " "))
	case len(o.PIDs) == 0 && len(o.Program) == 0:
		return nil, usagef("neither a program nor -p PID is given")
	case len(o.PIDs) > 0 && len(o.Program) > 0:
		return nil, usagef("-p and a program exclude each other")
	case f.traps && f.noTraps:
		return nil, usagef("--breakpoints and --no-breakpoints exclude each other")
	case len(f.summaries()) > 1:
		return nil, usagef("-c, --hist, --lhist and --between exclude each other")
	case f.set.Changed("by") && (len(f.summaries()) == 0 || f.by == ""):
		return nil, usagef("--by KEY[,KEY] needs -c, --hist, --lhist or --between")
	case f.set.Changed("pair") && (f.between == "" || f.pair == ""):
		return nil, usagef("--pair KEY[,KEY] needs --between")
	case f.set.Changed("every") && len(f.summaries()) == 0:
		return nil, usagef("--every TIME needs -c, --hist, --lhist or --between")
	case f.clear && f.every == "":
		return nil, usagef("--clear needs --every TIME")
	case f.set.Changed("output") && f.output == "":
		return nil, usagef("-o is empty")
	case f.set.Changed("events") && f.most <= 0:
		return nil, usagef("-n %d is less than 1", f.most)
	case f.set.Changed("filter") && strings.TrimSpace(f.filter) == "":
		return nil, usagef("--filter is empty")
	}
	if o.For, err = f.duration("for", f.limit); err != nil {
		return nil, err
	}
	if o.Every, err = f.duration("every", f.every); err != nil {
		return nil, err
	}
	o.Clear = f.clear
	if o.Declarations, f.declared, err = readDeclarations(f.types); err != nil {
		return nil, err
	}
	if f.filter != "" {
		if o.Filter, err = events.ParseFilter(f.filter); err != nil {
			return nil, usageError{err}
		}
	}
	return o, nil
}

// duration returns the value of a flag, 0 if it is not given.
func (f *traceFlags) duration(flag, text string) (time.Duration, error) {
	if !f.set.Changed(flag) {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, usagef("--%s %s is not a time: want 10s or 2m", flag, text)
	}
	return d, nil
}

// readDeclarations reads provider files, and those that systems ship for other providers. It returns the providers of the first.
func readDeclarations(values []string) (all probe.Declarations, declared map[string]bool, err error) {
	all, declared = probe.Declarations{}, map[string]bool{}
	add := func(p *provider.Provider) {
		for _, one := range p.Probes {
			var parameters []probe.Parameter
			for _, a := range one.Args {
				parameters = append(parameters, probe.Parameter{Type: a.Type, Name: a.Name, Length: a.Length})
			}
			all[p.Name+":"+strings.ReplaceAll(one.Name, "__", "-")] = parameters
		}
	}
	for _, value := range values {
		file, err := readTypes(value)
		if err != nil {
			return nil, nil, err
		}
		for _, p := range file.Providers {
			declared[p.Name] = true
			add(p)
		}
	}
	shipped, err := systems.Read()
	for _, file := range shipped {
		for _, p := range file.Providers {
			if !declared[p.Name] {
				add(p)
			}
		}
	}
	return all, declared, err
}

// readTypes reads a provider file, or what is the text of one: it has a brace, which names of files have not.
func readTypes(value string) (file *provider.File, err error) {
	name := value
	if _, statErr := os.Stat(value); statErr != nil && strings.Contains(value, "{") {
		name = "-s"
		file, err = provider.Parse(provider.NewScanner(name, value))
	} else {
		file, err = provider.Read(value, nil)
	}
	if err == nil && len(file.Providers) == 0 {
		err = fmt.Errorf("%s: declares no provider: want a file such as dtrace -h reads", name)
	}
	return file, err
}

// parseProbes reads the patterns of probes. Without any, the probes that --between names are traced.
func (f *traceFlags) parseProbes(o *trace.Options, probes []string) error {
	if len(probes) == 0 && f.between != "" {
		probes = strings.Split(f.between, ",")
	}
	for _, text := range probes {
		pattern, err := listing.ParsePattern(text)
		if err != nil {
			return err
		}
		o.Listing.Filter.Alternatives = append(o.Listing.Filter.Alternatives, pattern)
		o.Census.Texts = append(o.Census.Texts, text)
	}
	o.Census.Patterns = o.Listing.Filter.Alternatives
	for _, text := range f.required {
		pattern, err := listing.ParsePattern(text)
		if err == nil && strings.Trim(text, ": ") == "" {
			err = fmt.Errorf("--require %q names no probe", text)
		}
		if err != nil {
			return err
		}
		f.requiredPatterns = append(f.requiredPatterns, pattern)
	}
	return nil
}

// summaries are those that flags ask for.
func (f *traceFlags) summaries() (all []events.Summary) {
	for _, s := range []events.Summary{{Name: "count", Value: map[bool]string{true: "true"}[f.count]}, {Name: "hist", Value: f.hist}, {Name: "lhist", Value: f.linear}, {Name: "between", Value: f.between}} {
		if s.By, s.Pair = f.by, f.pair; s.Value != "" {
			all = append(all, s)
		}
	}
	return all
}

// sink returns what takes the events.
func (f *traceFlags) sink(p *program, w io.Writer) (events.Sink, error) {
	format := events.Formats[0]
	if f.format != "" {
		names := make([]string, len(events.Formats))
		at := slices.IndexFunc(events.Formats, func(format events.Format) bool { return format.Name == f.format })
		for i := range names {
			names[i] = events.Formats[i].Name
		}
		if at < 0 {
			return nil, usagef("unknown format %q: want %s", f.format, strings.Join(names, ", "))
		}
		format = events.Formats[at]
	}
	summaries := f.summaries()
	switch {
	case len(summaries) > 0 && format.Name != "text" && (format.Name != "perfetto" || f.between == ""):
		return nil, usagef("--format %s has no summaries: leave -c, --hist, --lhist and --between out", format.Name)
	case format.Name != "text" && (f.by != "" || f.every != ""):
		return nil, usagef("--format %s has no --by and no --every", format.Name)
	case format.IsDirectory && f.output == "":
		return nil, usagef("--format %s needs a directory: -o DIR", format.Name)
	case f.output != "":
		if err := events.CheckPath(f.output, format.IsDirectory); err != nil {
			return nil, err
		}
	}
	if len(summaries) > 0 {
		sink, err := summaries[0].NewSink(w)
		if between, ok := sink.(*events.BetweenSink); ok && format.Name == "perfetto" {
			between.Slices = &events.PerfettoSink{W: w}
		}
		if errors.Is(err, events.ErrFormat) {
			err = usageError{err}
		}
		return sink, err
	}
	sink := format.New(f.output, w)
	if text, ok := sink.(*events.TextSink); ok {
		text.Several = len(f.pids) > 1
		text.Colour = f.output == "" && isTerminal(p.Stdout) && p.Getenv("NO_COLOR") == ""
	}
	return sink, nil
}

// descriptor returns the file of a stream, or of one of the process's own.
func descriptor(stream any, own uintptr) uintptr {
	if file, ok := stream.(*os.File); ok && file != nil {
		return file.Fd()
	}
	return own
}
