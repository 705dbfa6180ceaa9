package placement

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/json"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/naming"
)

// maxManifests is how many bytes of manifests a Work holds: an object may have 1.5 MiB in etcd, and the agent's status comes on top.
const maxManifests = 900 << 10

// part is what one Work of every member holds.
type part struct {
	manifests []placement.Manifest
	digest    string
}

// cargo is what each picked member gets.
type cargo struct {
	parts  []part
	hash   string
	index  string
	apply  *placement.ApplyStrategy
	remove *placement.DeleteStrategy
}

// pack puts objects into as few parts as their order and the limit allow. There is always one, so that a member which has the placement
// goes on having it when nothing is selected any more.
func pack(objects []*unstructured.Unstructured, limit int) ([]part, error) {
	parts, size := []part{{}}, 0
	for _, o := range objects {
		text, err := json.Marshal(o.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %s/%s: %w", o.GetKind(), o.GetNamespace(), o.GetName(), err)
		}
		if size > 0 && size+len(text) > limit {
			parts, size = append(parts, part{}), 0
		}
		last := &parts[len(parts)-1]
		last.manifests = append(last.manifests, placement.Manifest{RawExtension: runtime.RawExtension{Raw: text}})
		size += len(text)
	}
	for i := range parts {
		parts[i].digest = digest(parts[i].manifests)
	}
	return parts, nil
}

// digest identifies manifests, however their JSON is written. Of those that were slimmed it is what is left of them.
func digest(manifests []placement.Manifest) string {
	if len(manifests) == 1 && bytes.HasPrefix(manifests[0].Raw, []byte(`"`)) {
		return strings.Trim(string(manifests[0].Raw), `"`)
	}
	sum := sha256.New()
	for _, m := range manifests {
		var content any
		text := m.Raw
		if err := json.Unmarshal(m.Raw, &content); err == nil {
			if canonical, err := json.Marshal(content); err == nil {
				text = canonical
			}
		}
		fmt.Fprintf(sum, "%d:", len(text))
		sum.Write(text)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

func hashOf(parts []part) string {
	sum := sha256.New()
	for _, p := range parts {
		fmt.Fprintln(sum, p.digest)
	}
	return hex.EncodeToString(sum.Sum(nil))[:16]
}

// Slim is how the hub caches Works: in the place of the manifests stands their digest, a text, which no manifest can be. A cache may
// transform an object twice.
func Slim(o any) (any, error) {
	if work, ok := o.(*placement.Work); ok {
		work.ManagedFields = nil
		for i := range work.Status.ManifestConditions {
			shorten(&work.Status.ManifestConditions[i])
		}
		work.Spec.Workload.Manifests = []placement.Manifest{{RawExtension: runtime.RawExtension{Raw: []byte(`"` + digest(work.Spec.Workload.Manifests) + `"`)}}}
	}
	return o, nil
}

// workName is the name of a part; upstream's agents and tools know the first.
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

// desiredWork is what a part is in a member namespace.
func desiredWork(of types.NamespacedName, c cargo, i int, memberNamespace string) *placement.Work {
	work := &placement.Work{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: memberNamespace, Name: workName(of, i),
			Labels: map[string]string{
				fleet.LabelManaged:           "true",
				placement.LabelParentCRP:     of.Name,
				placement.LabelParentBinding: naming.SafeConcat(of.Name, memberNamespace),
				placement.LabelResourceIndex: c.index,
			},
			Annotations: map[string]string{placement.AnnotationResourceSnapshot: fmt.Sprintf("%s-%s-snapshot", of.Name, c.index)},
		},
		Spec: placement.WorkSpec{Workload: placement.WorkloadTemplate{Manifests: c.parts[i].manifests}, ApplyStrategy: c.apply, DeleteStrategy: c.remove},
	}
	if of.Namespace != "" {
		work.Labels[placement.LabelParentNamespace] = of.Namespace
	}
	return work
}

// parentOf leads from a Work to its placement.
func parentOf(work metav1.Object) (types.NamespacedName, bool) {
	labels := work.GetLabels()
	of := types.NamespacedName{Namespace: labels[placement.LabelParentNamespace], Name: labels[placement.LabelParentCRP]}
	return of, of.Name != "" && labels[fleet.LabelManaged] == "true"
}

// holding is what one member has of a placement.
type holding struct {
	works []*placement.Work // in the order of their parts
	going bool              // all of them are being deleted
}

func (h *holding) sort() {
	slices.SortFunc(h.works, func(a, b *placement.Work) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
}

// find returns the Work of a name, or nil.
func (h *holding) find(name string) *placement.Work {
	if h == nil {
		return nil
	}
	for _, work := range h.works {
		if work.Name == name {
			return work
		}
	}
	return nil
}

// retained are the Works of a placement that are being deleted although the member is to have them, if its agent leaves what is applied when
// the finalizer is taken off: then the Works can be written again at once. Another agent has begun to remove it all, and is waited for.
func (h *holding) retained(of types.NamespacedName, c cargo) (retained []*placement.Work) {
	for i := range c.parts {
		work := h.find(workName(of, i))
		if work != nil && work.DeletionTimestamp != nil && work.Annotations[placement.AnnotationRetains] == "true" &&
			slices.Contains(work.Finalizers, placement.FinalizerWork) {
			retained = append(retained, work)
		}
	}
	return retained
}

// replacing is the JSON patch that gives a Work the spec, labels and annotations of another, and leaves alone what it has besides. It cannot
// collide with what the agent writes, and of the spec nothing old remains.
func replacing(there, with *placement.Work) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value any    `json:"value"`
	}
	labels, annotations := map[string]string{}, map[string]string{}
	maps.Copy(labels, there.Labels)
	maps.Copy(labels, with.Labels)
	maps.Copy(annotations, there.Annotations)
	maps.Copy(annotations, with.Annotations)
	return json.Marshal([]operation{{"add", "/spec", with.Spec}, {"add", "/metadata/labels", labels}, {"add", "/metadata/annotations", annotations}})
}

// stale returns the parts that the member does not have as they are now, and its Works that hold none.
func (h *holding) stale(of types.NamespacedName, c cargo) (missing []int, surplus []*placement.Work) {
	have := map[string]*placement.Work{}
	if h != nil {
		for _, work := range h.works {
			have[work.Name] = work
		}
	}
	for i, p := range c.parts {
		name := workName(of, i)
		work := have[name]
		delete(have, name)
		if work == nil || digest(work.Spec.Workload.Manifests) != p.digest || work.Labels[placement.LabelResourceIndex] != c.index ||
			!equality.Semantic.DeepEqual(work.Spec.ApplyStrategy, c.apply) || !equality.Semantic.DeepEqual(work.Spec.DeleteStrategy, c.remove) {
			missing = append(missing, i)
		}
	}
	for _, work := range have {
		if work.DeletionTimestamp == nil {
			surplus = append(surplus, work)
		}
	}
	return missing, surplus
}
