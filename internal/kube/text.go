package kube

import (
	"fmt"
	"slices"
	"strings"
)

// Clip shortens a text, for example from a member, to a number of bytes, and marks the cut.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}

// Name formats an object for messages: kind namespace/name, or kind name.
func Name(kind, namespace, name string) string {
	if namespace == "" {
		return kind + " " + name
	}
	return kind + " " + namespace + "/" + name
}

// JoinTexts joins the first of all texts with the number of the others: a; b; and 3 more.
func JoinTexts(first []string, all int) string {
	if more := all - len(first); more > 0 {
		first = append(slices.Clip(first), fmt.Sprintf("and %d more", more))
	}
	return strings.Join(first, "; ")
}

// JoinNames joins the first of all names with the number of the others: a, b and 3 more.
func JoinNames(first []string, all int) string {
	text := strings.Join(first, ", ")
	if more := all - len(first); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
