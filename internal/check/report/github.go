package report

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"sdtconvert/internal/check"
)

// gitHub is workflow commands, which GitHub shows as annotations of lines.
type gitHub struct{}

func (gitHub) Write(out io.Writer, r *Report) error {
	w := bufio.NewWriter(out)
	for i := range r.Findings {
		f := &r.Findings[i]
		command, properties := "error", ""
		if f.Rule.Severity == check.Note {
			command = "notice"
		}
		message := sentence(f)
		switch {
		case f.Line != 0:
			properties = fmt.Sprintf("file=%s,line=%d,", gitHubProperty(r.checkedOut(f.Source)), f.Line)
		case f.File != "":
			properties = fmt.Sprintf("file=%s,", gitHubProperty(r.checkedOut(fileOf(f.File))))
		}
		for _, word := range []string{f.Place, f.File, r.sourceLine(f)} { // logs show no properties
			if word != "" {
				message = word + ": " + message
			}
		}
		fmt.Fprintf(w, "::%s %stitle=%s::%s\n", command, properties, gitHubProperty(f.Rule.Name), gitHubData(message))
	}
	for _, err := range r.Errors {
		fmt.Fprintf(w, "::error title=sdtconvert::%s\n", gitHubData(err.Error()))
	}
	fmt.Fprintln(w, r.summary())
	return w.Flush()
}

// What ends a command's line, or a property in it, is written as in URLs.
var (
	gitHubData     = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace
	gitHubProperty = strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A", ":", "%3A", ",", "%2C").Replace
)
