package report

import (
	"io"
	"net/url"
	"path/filepath"

	"sdtconvert/internal/check"
)

// The part of SARIF 2.1.0 that a report needs. The sections are those of the
// standard (OASIS, 27 March 2020). A library for all of it would make each start
// of the program slower.

// sarif is one log, with one run.
type sarif struct{}

type sarifLog struct { // 3.13
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct { // 3.14
	Tool struct { // 3.18
		Driver struct { // 3.19
			Name    string      `json:"name"`
			Version string      `json:"version"`
			Rules   []sarifRule `json:"rules"`
		} `json:"driver"`
	} `json:"tool"`
	Invocations []sarifInvocation `json:"invocations"`
	Results     []sarifResult     `json:"results"`
}

type sarifRule struct { // 3.49
	ID      string       `json:"id"`
	Short   sarifMessage `json:"shortDescription"`
	Full    sarifMessage `json:"fullDescription"`
	Help    sarifMessage `json:"help"`
	Default sarifLevel   `json:"defaultConfiguration"`
}

type sarifLevel struct { // 3.50
	Level string `json:"level"`
}

type sarifMessage struct { // 3.11
	Text string `json:"text"`
}

type sarifInvocation struct { // 3.20
	Successful    bool                `json:"executionSuccessful"`
	Notifications []sarifNotification `json:"toolExecutionNotifications,omitempty"`
}

type sarifNotification struct { // 3.58
	Level   string       `json:"level"`
	Message sarifMessage `json:"message"`
}

type sarifResult struct { // 3.27
	RuleID       string            `json:"ruleId"`
	RuleIndex    int               `json:"ruleIndex"`
	Level        string            `json:"level"`
	Message      sarifMessage      `json:"message"`
	Locations    []sarifLocation   `json:"locations,omitempty"`
	Fingerprints map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct { // 3.28
	Physical sarifPhysical  `json:"physicalLocation"`
	Logical  []sarifLogical `json:"logicalLocations,omitempty"`
}

type sarifPhysical struct { // 3.29
	Artifact struct { // 3.4
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region *sarifRegion `json:"region,omitempty"`
}

type sarifRegion struct { // 3.30
	Line int `json:"startLine"`
}

type sarifLogical struct { // 3.33
	Name string `json:"fullyQualifiedName"`
	Kind string `json:"kind"`
}

const sarifSchema = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/os/schemas/sarif-schema-2.1.0.json"

func (sarif) Write(w io.Writer, r *Report) error {
	run := sarifRun{Invocations: []sarifInvocation{{Successful: len(r.Errors) == 0}}, Results: []sarifResult{}}
	run.Tool.Driver.Name, run.Tool.Driver.Version = "sdtconvert", r.Release
	index := map[*check.Rule]int{}
	for i, rule := range check.Rules {
		index[rule] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: rule.Name, Short: sarifMessage{rule.Summary}, Full: sarifMessage{rule.Cause}, Help: sarifMessage{rule.Cure},
			Default: sarifLevel{string(rule.Severity)},
		})
	}
	for _, err := range r.Errors {
		run.Invocations[0].Notifications = append(run.Invocations[0].Notifications, sarifNotification{"error", sarifMessage{err.Error()}})
	}
	for i := range r.Findings {
		f := &r.Findings[i]
		result := sarifResult{
			RuleID: f.Rule.Name, RuleIndex: index[f.Rule], Level: string(f.Rule.Severity),
			Message: sarifMessage{f.Message}, Fingerprints: map[string]string{"sdtconvert/v2": f.Fingerprint()},
		}
		if f.Probe != "" {
			result.Message.Text = probeText(f.Probe) + ": " + result.Message.Text
		}
		if f.File != "" {
			where := f.File
			if f.Place != "" {
				where += ", " + f.Place
			}
			result.Message.Text += " (" + where + ")"
		}
		if f.File != "" || f.Line != 0 || len(r.Given) > 0 {
			result.Locations = []sarifLocation{r.sarifLocation(f)}
		}
		run.Results = append(run.Results, result)
	}
	return encodeJSON(w, sarifLog{sarifSchema, "2.1.0", []sarifRun{run}})
}

// sarifLocation returns the source line where it is known, else the file itself. A finding of
// no file is in the first: GitHub refuses a log that has results without a location.
func (r *Report) sarifLocation(f *check.Finding) sarifLocation {
	path := f.Path()
	if path == "" && len(r.Given) > 0 {
		path = r.Given[0]
	}
	var l sarifLocation
	if f.Line != 0 {
		path, l.Physical.Region = f.Source, &sarifRegion{f.Line}
	}
	l.Physical.Artifact.URI = sarifURI(r.checkedOut(path))
	if f.Function != "" {
		l.Logical = []sarifLogical{{f.Function, "function"}}
	}
	return l
}

// sarifURI makes a reference of a path: a relative one if the path is.
func sarifURI(path string) string {
	u := url.URL{Path: filepath.ToSlash(path)}
	if filepath.IsAbs(path) {
		u.Scheme = "file"
	}
	return u.String()
}
