package kube

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// Named is a text about a named object, such as a member.
type Named struct{ Name, Text string }

// Group is a text and the names of all its objects.
type Group struct {
	Text  string
	Names []string
}

// GroupTexts collects the objects with equal texts. The text with most objects is first; equal ones
// keep their order.
func GroupTexts(objects []Named) (groups []Group) {
	index := map[string]int{}
	for _, one := range objects {
		i, known := index[one.Text]
		if !known {
			i = len(groups)
			index[one.Text], groups = i, append(groups, Group{Text: one.Text})
		}
		groups[i].Names = append(groups[i].Names, one.Name)
	}
	slices.SortStableFunc(groups, func(a, b Group) int { return len(b.Names) - len(a.Names) })
	return groups
}

// String formats the group with the first few names: a, b, c and 3 more: text.
func (g Group) String() string {
	const named = 3
	text := JoinNames(g.Names[:min(len(g.Names), named)], len(g.Names))
	if g.Text != "" {
		text += ": " + g.Text
	}
	return text
}

// HeldByFinalizers returns the reason why an object in deletion remains.
func HeldByFinalizers(o metav1.Object) string {
	return fmt.Sprintf("it is deleted once its finalizers are gone, which Muster does not take off (%s): if the hub that set them is gone, "+
		"remove them from metadata.finalizers", strings.Join(o.GetFinalizers(), ", "))
}
