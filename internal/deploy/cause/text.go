package cause

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/redaction"
)

const (
	// maxText is the maximum length of a cause, in bytes.
	maxText = 300
	// maxLine is the maximum length of the line of an application, in bytes.
	maxLine = 120
)

// said joins a reason and a message.
func said(reason, message string) string {
	message = redaction.Text(oneLine(message))
	switch {
	case message == "" || message == reason:
		return reason
	case reason == "":
		return message
	}
	return reason + ": " + message
}

// oneLine replaces line breaks and other control characters by spaces.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
	return strings.Join(strings.Fields(text), " ")
}

// lastLine returns the last line of the text of an application, short and without secrets.
func lastLine(text string) string {
	// A private key has many lines, so secrets are removed before the lines are separated.
	lines := strings.FieldsFunc(redaction.Application(text), func(r rune) bool { return r == '\n' || r == '\r' })
	for _, line := range slices.Backward(lines) {
		if line = oneLine(line); line != "" {
			return kube.Clip(line, maxLine)
		}
	}
	return ""
}

// random is a suffix of a generated name, after the hash of a Pod template if there is one.
const random = `(?:-[bcdfghjklmnpqrstvwxz2456789]{6,10})?-[bcdfghjklmnpqrstvwxz2456789]{5}\b`

// withoutRandom replaces the generated names of the Pods of a workload by one pattern. Each attempt
// to create a Pod has another name, and each member has others.
func withoutRandom(text, workload string) string {
	return regexp.MustCompile(`\b`+regexp.QuoteMeta(workload)+random).ReplaceAllLiteralString(text, workload+"-*")
}
