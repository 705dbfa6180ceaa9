package kube

import (
	"regexp"
	"strings"
)

const (
	// invalidValue precedes the value in an error of the API server about a field.
	invalidValue = "Invalid value: "
	// maxValue is the longest unshortened value in a message, in bytes.
	maxValue = 80
)

// unstructuredValue is a value in a type error of server-side apply.
var unstructuredValue = regexp.MustCompile(`got &value\.valueUnstructured\{[^\n]*?\}( \.|\n|$)`)

// ShortenValues shortens the values in a refusal of the API server, to keep its cause from being
// cut off. It leaves out the values of type errors: they may be of a Secret.
func ShortenValues(message string) string {
	var short strings.Builder
	for {
		before, rest, found := strings.Cut(message, invalidValue)
		short.WriteString(before)
		if !found {
			break
		}
		short.WriteString(invalidValue)
		end := valueEnd(rest)
		switch {
		case end <= maxValue:
			short.WriteString(rest[:end])
		case rest[0] == '"':
			short.WriteString(`"..."`)
		default:
			short.WriteString("{...}")
		}
		message = rest[end:]
	}
	return unstructuredValue.ReplaceAllString(short.String(), "got a value of another type$1")
}

// valueEnd returns the length of the value at the start of a text: a text in quotes, a structure in
// brackets, or a word.
func valueEnd(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			if quoted = !quoted; !quoted && depth == 0 {
				return i + 1
			}
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth <= 0 {
				return i + 1
			}
		case depth == 0 && strings.HasPrefix(text[i:], ": "):
			return i
		}
	}
	return len(text)
}
