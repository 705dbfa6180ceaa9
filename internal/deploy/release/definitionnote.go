package release

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

const (
	// certified ends the digest of a definition with a certificate of the chart.
	certified = "+ca"
	// maxCRDs is the maximum number of definitions in a message.
	maxCRDs = 3
)

// annotate puts the note into the chart.
func (b *bringer) annotate() {
	annotations := b.request.Chart.Metadata.Annotations
	delete(annotations, annotationCRDs) // the author of a chart may have one
	if note := b.note(); note != "" {
		annotations[annotationCRDs] = note
	}
}

// note returns the names and digests of the definitions in crds/. The history keeps it instead of
// the large definitions.
func (b *bringer) note() string {
	var words []string
	for _, one := range b.done {
		if b.request.crds() == fleet.CRDsSkip || !isCRD(one.wanted) {
			continue
		}
		word := one.wanted.GetName() + "=" + one.digest
		if hasCertificate(one.wanted) {
			word += certified
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

// NotedCRDs returns the digests of the definitions in a note, by their names.
func NotedCRDs(note string) map[string]string {
	digests := map[string]string{}
	for _, word := range strings.Fields(note) {
		name, digest, _ := strings.Cut(word, "=")
		digests[name] = digest
	}
	return digests
}

// CRDDifference names definitions on the member that differ from crds/ of the chart.
type CRDDifference struct{ Differ, Missing []string }

// CompareCRDs compares the definitions on the member with a note.
func (c *Cluster) CompareCRDs(ctx context.Context, noted map[string]string) (CRDDifference, error) {
	var result CRDDifference
	for _, name := range slices.Sorted(maps.Keys(noted)) {
		found, err := c.Dynamic.Resource(crdResource).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			result.Missing = append(result.Missing, name)
			continue
		}
		if err != nil {
			return result, fmt.Errorf("reading CustomResourceDefinition %s: %w", name, err)
		}
		wanted, withCertificate := strings.CutSuffix(noted[name], certified)
		digest, err := digestOfCRD(found, withCertificate)
		if err != nil {
			return result, err
		}
		if digest != wanted {
			result.Differ = append(result.Differ, name)
		}
	}
	return result, nil
}

// Message names the definitions, the setting and the remedy; empty if there is no difference.
func (d CRDDifference) Message(setting string) string {
	var sentences []string
	if len(d.Differ) > 0 && setting == fleet.CRDsCreateReplace {
		sentences = append(sentences, fmt.Sprintf("changed on the member and no longer as in crds/ of the chart: CustomResourceDefinition %s; "+
			"the next deployment replaces it, and forceSyncGeneration starts one", crdNames(d.Differ)))
	} else if len(d.Differ) > 0 {
		sentences = append(sentences, fmt.Sprintf("not as in crds/ of the chart: CustomResourceDefinition %s; helm.crds is %s, which leaves "+
			"existing ones as they are: set it to %s to have them upgraded", crdNames(d.Differ), fleet.CRDsCreate, fleet.CRDsCreateReplace))
	}
	if len(d.Missing) > 0 {
		sentences = append(sentences, fmt.Sprintf("deleted on the member, and in crds/ of the chart: CustomResourceDefinition %s; the next "+
			"deployment creates it, and forceSyncGeneration starts one", crdNames(d.Missing)))
	}
	return strings.Join(sentences, "; ")
}

// crdNames joins the first of the names.
func crdNames(names []string) string {
	text := strings.Join(names[:min(len(names), maxCRDs)], ", ")
	if more := len(names) - maxCRDs; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

var (
	noMatch      = regexp.MustCompile(`no matches for kind "([^"]+)" in (?:version|group) "([^"/]+)`)
	untyped      = regexp.MustCompile(`\(\S+; ([^/\s]+)/\S+, Kind=(\w+)\).*field not declared in schema`)
	unknownField = regexp.MustCompile(`field not declared in schema|unknown field "`)
)

// IsUnknownField reports whether an error means an unknown field of a kind. Helm keeps only the
// text.
func IsUnknownField(err error) bool { return unknownField.MatchString(err.Error()) }

// explain adds crds/ and the setting to an error about a definition on the member.
func (b *bringer) explain(err error) error {
	text, group, kind := err.Error(), "", ""
	if found := noMatch.FindStringSubmatch(text); found != nil {
		kind, group = found[1], found[2]
	} else if found := untyped.FindStringSubmatch(text); found != nil {
		group, kind = found[1], found[2]
	} else if !IsUnknownField(err) {
		return err
	}
	var names []string
	for _, one := range b.done {
		spec, unreadable := specOf(one.wanted)
		if !isCRD(one.wanted) || unreadable != nil || kind != "" && (spec.Group != group || spec.Names.Kind != kind) {
			continue
		}
		if b.request.crds() == fleet.CRDsSkip || one.differs && one.step != crdReplaced {
			names = append(names, one.wanted.GetName())
		}
	}
	switch {
	case len(names) == 0:
		return err
	case b.request.crds() == fleet.CRDsSkip:
		return fmt.Errorf("%w: crds/ of the chart has CustomResourceDefinition %s, and helm.crds is %s, which leaves it to others: "+
			"install it, or set helm.crds to %s", err, crdNames(names), fleet.CRDsSkip, fleet.CRDsCreateReplace)
	}
	return fmt.Errorf("%w: crds/ of the chart has another CustomResourceDefinition %s than the member, and helm.crds is %s, which leaves "+
		"existing ones as they are: set it to %s to have them upgraded", err, crdNames(names), b.request.crds(), fleet.CRDsCreateReplace)
}
