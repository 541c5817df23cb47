package events

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"sdtconvert/arch"
	"sdtconvert/internal/message"
	"sdtconvert/internal/trace/probe"
)

// parsedComparison is a comparison as a filter has it.
type parsedComparison struct {
	left     value
	operator string
	right    value
}

// Never explains the comparisons of a filter that are true for no event of any of the sites. It returns nil if there are none, or no sites.
func (f *Filter) Never(sites []*probe.Site) error {
	var all []error
	if f == nil {
		return nil
	}
	for i := range f.comparisons {
		if reason := f.comparisons[i].never(sites); reason != "" {
			all = append(all, fmt.Errorf("--filter: a comparison is never true: %s", message.Escape(reason)))
		}
	}
	return errors.Join(all...)
}

// never returns why a comparison is false for all sites, "" if it may be true.
func (c *parsedComparison) never(sites []*probe.Site) (reason string) {
	for _, s := range sites {
		if s.Kind != arch.Probe {
			continue
		}
		why := c.neverAt(s, &c.left, &c.right)
		if why == "" {
			why = c.neverAt(s, &c.right, &c.left)
		}
		if why == "" {
			return ""
		}
		if reason == "" {
			reason = why
		}
	}
	return reason
}

// neverAt returns why a comparison of a value of a site with another is false, "" if it may be true.
func (c *parsedComparison) neverAt(s *probe.Site, v, other *value) string {
	isEqual := c.operator == "=="
	switch {
	case v.ofSite != nil && other.isConstant && isEqual && v.ofSite(s) != other.shown:
		hint := ""
		if strings.ContainsAny(other.shown, "*?[") {
			hint = fmt.Sprintf("; %s ~ %q compares with a glob", v.shown, other.shown)
		}
		return fmt.Sprintf("no probe that is traced has the %s %q%s", v.shown, other.shown, hint)
	case v.argument == nil:
		return ""
	}
	i, ok := v.argument.Find(s)
	if !ok {
		return fmt.Sprintf("no probe that is traced has the argument %s", v.argument)
	}
	a := &s.Arguments[i]
	isText := c.operator == "~" || other.text != nil && other.number == nil
	switch {
	case a.Format == probe.Unreadable:
		return fmt.Sprintf("nothing tells where the argument %s of %s is", v.argument, s.Text)
	case !isText || a.Format == probe.Text || a.Format == probe.TypeName:
		return ""
	case a.Enumerators != nil && isEqual && other.isConstant && !slices.Contains(slices.Collect(maps.Values(a.Enumerators)), other.shown):
		return fmt.Sprintf("the argument %s of %s, of the type %s, has no value %s", v.argument, s.Text, a.Type, other.shown)
	case a.Format == probe.Boolean && isEqual && other.isConstant && constants[other.shown] == 0 && other.shown != "false":
		return fmt.Sprintf("the argument %s of %s is true or false", v.argument, s.Text)
	case a.Enumerators != nil || a.Format == probe.Boolean:
		return ""
	case a.Type == "":
		return fmt.Sprintf("nothing tells that the argument %s of %s is a text: give its type by -s FILE.d", v.argument, s.Text)
	}
	return fmt.Sprintf("the argument %s of %s is no text: its type is %s", v.argument, s.Text, a.Type)
}
