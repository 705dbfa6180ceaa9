package kube

import "strings"

// Clip shortens a text, such as one that a member wrote, to a number of bytes, and shows that it did.
func Clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
