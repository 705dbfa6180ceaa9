package view

import (
	"strings"
	"unicode"

	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
)

// The limits of texts for people, in bytes. An admission policy bounds their characters.
const (
	maxDisplayName = 4 * 63
	maxDescription = 4 * 1024
)

// DisplayName returns the name of a member for people; "" if it has none.
func DisplayName(o client.Object) string {
	return forPeople(o.GetAnnotations()[fleet.AnnotationDisplayName], maxDisplayName)
}

// Description returns the description of a member; "" if it has none.
func Description(o client.Object) string {
	return forPeople(o.GetAnnotations()[fleet.AnnotationDescription], maxDescription)
}

// forPeople returns a text in one line. A user may have written it without the admission policy.
func forPeople(text string, most int) string {
	printable := strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	return kube.Clip(strings.Join(strings.Fields(printable), " "), most)
}
