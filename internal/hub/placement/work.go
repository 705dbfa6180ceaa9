package placement

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

const (
	// maxManifests limits the bytes of manifests put into a Work: etcd stores objects of 1.5 MiB,
	// and the agent's status comes on top. The objects of a Work may grow up to maxGrown.
	maxManifests, maxGrown = 900 << 10, 1200 << 10
	// maxObjects limits the objects put into a Work. The agent's status takes some 500 bytes for
	// each.
	maxObjects = 600
	// maxParts limits the Works of a member to read objects from.
	maxParts = 1000
	// cachedObjects is an annotation of Works in the cache only: the identities of their objects,
	// a line each.
	cachedObjects = "muster/objects-in-cache"
)

// desiredWorks are the desired Works of a member, one for each part.
type desiredWorks struct {
	parts          []part
	hash, index    string
	applyStrategy  *placement.ApplyStrategy
	deleteStrategy *placement.DeleteStrategy
	// overrides are the annotations with the member's overrides.
	overrides map[string]string
	// envelopes maps the identity of each wrapped object to the identity of its envelope.
	envelopes map[string]string
}

// objectsOf returns the identities of the objects of a cached Work.
func objectsOf(work *placement.Work) []string {
	return strings.Split(work.Annotations[cachedObjects], "\n")
}

// digest identifies manifests, regardless of their JSON formatting. Cached manifests have been
// replaced by their digest in Slim.
func digest(manifests []placement.Manifest) string {
	if isSlim(manifests) {
		return strings.Trim(string(manifests[0].Raw), `"`)
	}
	var joined strings.Builder
	for _, m := range manifests {
		var content any
		text := m.Raw
		if err := json.Unmarshal(m.Raw, &content); err == nil {
			if canonical, err := json.Marshal(content); err == nil {
				text = canonical
			}
		}
		fmt.Fprintf(&joined, "%d:%s", len(text), text)
	}
	return naming.ShortDigest(joined.String())
}

func hashParts(parts []part) string {
	var all strings.Builder
	for _, p := range parts {
		fmt.Fprintln(&all, p.digest)
	}
	return naming.ShortDigest(all.String())
}

// Slim transforms Works for the cache. It replaces the manifests by their digest, a JSON string: no
// manifest can look the same. It notes the identities of the objects. A cache may transform an
// object twice.
func Slim(o any) (any, error) {
	work, ok := o.(*placement.Work)
	if !ok {
		return o, nil
	}
	work.ManagedFields = nil
	for i := range work.Status.ManifestConditions {
		truncateDetails(&work.Status.ManifestConditions[i])
	}
	if isSlim(work.Spec.Workload.Manifests) {
		return o, nil
	}
	var ids []string
	for _, m := range work.Spec.Workload.Manifests {
		ids = append(ids, identityOf(m))
	}
	// Most members have the same Works: one text is shared by all.
	metav1.SetMetaDataAnnotation(&work.ObjectMeta, cachedObjects, unique.Make(strings.Join(ids, "\n")).Value())
	slim := []byte(`"` + digest(work.Spec.Workload.Manifests) + `"`)
	work.Spec.Workload.Manifests = []placement.Manifest{{RawExtension: runtime.RawExtension{Raw: slim}}}
	return o, nil
}

// isSlim reports whether manifests are only their digest.
func isSlim(manifests []placement.Manifest) bool {
	return len(manifests) == 1 && bytes.HasPrefix(manifests[0].Raw, []byte(`"`))
}

// workName returns the name of the Work of a part. KubeFleet's agents and tools know the name of
// the first.
func workName(of types.NamespacedName, i int) string {
	name := of.Name
	if of.Namespace != "" {
		name = of.Namespace + "." + of.Name
	}
	if i == 0 {
		return name + "-work"
	}
	return fmt.Sprintf("%s-%d", name, i)
}

// snapshotName returns the name of a revision of a placement's selection.
func snapshotName(of types.NamespacedName, index string) string {
	return fmt.Sprintf("%s-%s-snapshot", of.Name, index)
}

// work returns the Work of one part for a member.
func (d desiredWorks) work(key types.NamespacedName, i int, to target) *placement.Work {
	work := &placement.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: to.namespace, Name: workName(key, i),
			Labels: map[string]string{
				fleet.LabelManaged:           "true",
				placement.LabelParentCRP:     key.Name,
				placement.LabelParentBinding: bindingName(key, to.namespace),
				placement.LabelResourceIndex: d.index,
			},
			Annotations: map[string]string{placement.AnnotationResourceSnapshot: snapshotName(key, d.index)},
		},
		Spec: placement.WorkSpec{Workload: placement.WorkloadTemplate{Manifests: d.parts[i].manifests}, ApplyStrategy: d.applyStrategy,
			DeleteStrategy: d.deleteStrategy},
	}
	maps.Copy(work.Annotations, d.overrides)
	if from := d.envelopesOf(i); len(from) > 0 {
		work.Annotations[placement.AnnotationEnvelopes] = strings.Join(from, "\n")
	}
	maps.Copy(work.Labels, delivery.RecipientLabels(to.name, to.epoch))
	if key.Namespace != "" {
		work.Labels[placement.LabelParentNamespace] = key.Namespace
	}
	return work
}

// maxEnvelopes limits the envelopes named by a Work.
const maxEnvelopes = 100

// envelopesOf returns the envelopes of the objects of a part.
func (d desiredWorks) envelopesOf(i int) []string {
	from := map[string]bool{}
	for _, id := range d.parts[i].objects {
		if envelope := d.envelopes[id]; envelope != "" && len(from) < maxEnvelopes {
			from[envelope] = true
		}
	}
	return slices.Sorted(maps.Keys(from))
}

// parentOf returns the placement of a Work. A member may change the labels of its Works, but not
// their names. Labels count only if a placement of this name would write a Work with this name.
func parentOf(work metav1.Object) (types.NamespacedName, bool) {
	of := labelledParent(work)
	_, named := partOf(of, work.GetName())
	return of, of.Name != "" && named && work.GetLabels()[fleet.LabelManaged] == "true"
}

func labelledParent(work metav1.Object) types.NamespacedName {
	labels := work.GetLabels()
	return types.NamespacedName{Namespace: labels[placement.LabelParentNamespace], Name: labels[placement.LabelParentCRP]}
}

// relabelled reports whether a Work of the hub has lost the labels of its placement.
func relabelled(work metav1.Object) bool {
	_, ok := parentOf(work)
	return !ok && work.GetLabels()[fleet.LabelManaged] == "true"
}

// replacement returns the JSON patch to replace the spec of a Work, and the hub's labels and
// annotations. Unlike a merge patch it leaves nothing old in the spec, and unlike an update it
// cannot conflict with the agent.
func replacement(have, want *placement.Work) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	labels, annotations := map[string]string{}, map[string]string{}
	maps.Copy(labels, have.Labels)
	delete(labels, placement.LabelParentNamespace)
	maps.Copy(labels, want.Labels)
	if binding := have.Labels[placement.LabelParentBinding]; binding != "" {
		labels[placement.LabelParentBinding] = binding // KubeFleet's hub would find its Work by it on a return
	}
	maps.Copy(annotations, have.Annotations)
	for _, key := range overrideAnnotations {
		delete(annotations, key)
	}
	delete(annotations, placement.AnnotationOverriddenBy)
	delete(annotations, placement.AnnotationEnvelopes)
	delete(annotations, cachedObjects)
	delete(annotations, placement.AnnotationRemoved) // the hub ended before it deleted the Work, and wants it again
	maps.Copy(annotations, want.Annotations)
	return json.Marshal([]operation{
		{"add", "/spec", want.Spec}, {"add", "/metadata/labels", labels}, {"add", "/metadata/annotations", annotations},
		{"add", "/metadata/managedFields", kube.Untracked},
	})
}

// overrideAnnotations are the annotations of a Work with its overrides.
var overrideAnnotations = []string{placement.AnnotationClusterOverrides, placement.AnnotationOverrides}
