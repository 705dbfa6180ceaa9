package override

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/muster-fleet/muster/internal/kube"
)

// Names reports whether the override names its placement.
func (o Override) Names() bool { return o.placement != nil }

// maxUnmatched is the maximum number of selectors in a message.
const maxUnmatched = 3

// Unmatched describes the overrides for a placement without a matching object, sorted.
func Unmatched(overrides []Override, placement types.NamespacedName, objects []*unstructured.Unstructured) (sentences []string) {
	for _, o := range overrides {
		selects := func(object *unstructured.Unstructured) bool { return o.Selects(identify(object)) }
		if !o.Names() || !o.For(placement) || slices.ContainsFunc(objects, selects) {
			continue
		}
		var wanted []string
		for _, s := range o.selectors[:min(len(o.selectors), maxUnmatched)] {
			kind := strings.TrimPrefix(s.Group+"/"+s.Version, "/")
			wanted = append(wanted, fmt.Sprintf("%s %s of %s", s.Kind, s.Name, kind))
		}
		sentences = append(sentences, fmt.Sprintf("%s names this placement, which does not select its %s",
			o, kube.JoinNames(wanted, len(o.selectors))))
	}
	slices.Sort(sentences)
	return sentences
}

// Unselected describes the overrides for their placement without a matching member.
func (s Set) Unselected(members []Member) (sentences []string) {
	for _, o := range s {
		selects := func(m Member) bool {
			return slices.ContainsFunc(o.rules, func(r rule) bool { return r.selects(labels.Set(m.Labels)) })
		}
		if o.Names() && o.problem == "" && len(members) > 0 && !slices.ContainsFunc(members, selects) {
			sentences = append(sentences, fmt.Sprintf("%s names this placement, and no picked member matches its clusterSelector", o))
		}
	}
	return sentences
}
