package crash

import (
	"context"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/backup"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/testkube"
)

// plane is all that a control plane has stored, but for events and what Kubernetes derives
// from other objects.
type plane struct {
	name    string
	objects []unstructured.Unstructured
}

// derived lists kinds that no program of the fleet writes. Kubernetes derives ReplicaSets and Pods
// from the agent's Deployment, and the Deployment reports their number and state. Each change of
// the Deployment leaves a ReplicaSet without Pods. A killed program may make a change again.
var derived = []string{"Event", "Endpoints", "EndpointSlice", "ComponentStatus", "APIService", "IPAddress", "ReplicaSet", "Pod"}

// kinds are what a control plane serves and lists, in one version each.
func kinds(in *run, cluster testkube.Cluster) []schema.GroupVersionKind {
	in.t.Helper()
	found, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	in.check(err)
	lists, err := found.ServerPreferredResources()
	in.check(err)
	var all []schema.GroupVersionKind
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		in.check(err)
		for _, r := range list.APIResources {
			if slices.Contains(r.Verbs, "list") && !slices.Contains(derived, r.Kind) {
				all = append(all, gv.WithKind(r.Kind))
			}
		}
	}
	return all
}

// read reads all objects of the run's hub and of the member.
func (in *run) read() []plane {
	in.t.Helper()
	planes := []plane{{name: "hub"}, {name: "member"}}
	for i, cluster := range []testkube.Cluster{in.at, in.member} {
		if in.kinds[i] == nil {
			in.kinds[i] = kinds(in, cluster)
		}
		planes[i].objects = list(in, cluster.Client(in.t), in.kinds[i])
	}
	return planes
}

func list(in *run, on client.Client, kinds []schema.GroupVersionKind) []unstructured.Unstructured {
	in.t.Helper()
	var objects []unstructured.Unstructured
	for _, kind := range kinds {
		found := &unstructured.UnstructuredList{}
		found.SetGroupVersionKind(kind)
		if err := on.List(context.Background(), found); err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) {
			in.t.Fatalf("listing %s: %v", kind, err)
		}
		for _, o := range found.Items {
			if kind.Kind == "ClusterRoleBinding" && strings.HasPrefix(o.GetName(), agentroles.ContentRole+"-") {
				objects = append(objects, shares(in, o)...)
			} else {
				objects = append(objects, o)
			}
		}
	}
	return objects
}

// shares makes an object of what each member has of a binding that many share: which one it is, and
// who else is in it, is chance.
func shares(in *run, binding unstructured.Unstructured) []unstructured.Unstructured {
	in.t.Helper()
	subjects, _, err := unstructured.NestedSlice(binding.Object, "subjects")
	in.check(err)
	var all []unstructured.Unstructured
	for _, subject := range subjects {
		share := unstructured.Unstructured{Object: map[string]any{"roleRef": binding.Object["roleRef"], "subjects": []any{subject}}}
		namespace := fmt.Sprint(subject.(map[string]any)["namespace"])
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(namespace)) // it returns no error
		share.SetKind("ClusterRoleBinding")
		share.SetName(agentroles.ContentRole + " of " + namespace)
		share.SetUID(types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012x", hash.Sum64()>>16)))
		all = append(all, share)
	}
	return all
}

// known is what there was before a run.
type known struct {
	uids map[types.UID]bool
	// contents are the names of the Contents, which do not say whose they are.
	contents []string
}

func (in *run) rememberObjects() known {
	in.t.Helper()
	k := known{uids: map[types.UID]bool{}}
	for _, p := range in.read() {
		for _, o := range p.objects {
			k.uids[o.GetUID()] = true
			if o.GetKind() == "Content" {
				k.contents = append(k.contents, o.GetName())
			}
		}
	}
	return k
}

// snapshot is what a run has made, normalized: by control plane, kind, namespace and name,
// how each object is.
type snapshot map[string]any

// snapshot reads the objects of both control planes and says how what the run has made is, in words
// that are the same in each run.
func (in *run) snapshot() (snapshot, []plane) {
	in.t.Helper()
	planes := in.read()
	w := words{id: in.id, live: map[string]bool{}, generated: map[string]string{}}
	for i, p := range planes {
		for _, o := range p.objects {
			w.live[string(o.GetUID())], w.live[uid.FindStringSubmatch(string(o.GetUID()))[1]] = true, true
			if prefix := o.GetGenerateName(); prefix != "" {
				w.generated[o.GetName()] = prefix + "*"
			}
		}
		planes[i].objects = slices.DeleteFunc(p.objects, func(o unstructured.Unstructured) bool { return in.known.uids[o.GetUID()] })
		// of two objects with one name but for a random part, the older one comes first in each run
		slices.SortStableFunc(planes[i].objects, func(a, b unstructured.Unstructured) int {
			return a.GetCreationTimestamp().Compare(b.GetCreationTimestamp().Time)
		})
	}
	made, passed := snapshot{}, superseded(planes)
	for _, p := range planes {
		for _, o := range p.objects {
			owner := metav1.GetControllerOf(&o)
			if history(o) || passed[o.GetUID()] != "" || owner != nil && passed[owner.UID] != "" {
				continue
			}
			withoutRights(o, passed)
			w.past = o.GetKind() == "AuditEntry"
			key := w.text(fmt.Sprintf("%s: %s %s/%s", p.name, o.GetKind(), o.GetNamespace(), o.GetName()))
			if w.past && o.GetAnnotations()[backup.AnnotationRestored] != "" {
				key += " of the lost hub"
			}
			for made[key] != nil && !w.past { // whose request was granted, was killed and asked again has two
				key += " and another"
			}
			made[key] = w.object(o)
		}
	}
	return made, planes
}

// history reports whether an object is the history of a release before the deployed revision. The
// history includes a revision whose deployer was killed.
func history(o unstructured.Unstructured) bool {
	labels := o.GetLabels()
	return o.GetKind() == "Secret" && labels["owner"] == "helm" && labels["status"] != "deployed"
}

// differences returns the differences of another end from this one.
func (s snapshot) differences(other snapshot) []string {
	var found []string
	for _, key := range slices.Sorted(maps.Keys(s)) {
		if _, there := other[key]; !there {
			found = append(found, "missing: "+key)
		} else if diff := cmp.Diff(s[key], other[key]); diff != "" {
			found = append(found, key+" differs:\n"+diff)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(other)) {
		if _, expected := s[key]; !expected {
			found = append(found, "left over: "+key)
		}
	}
	return found
}

// words replaces what differs from run to run.
type words struct {
	id string
	// live are the UIDs of all objects that there are, and their beginnings.
	live map[string]bool
	// past is true if the UID of a deleted object may appear without being a difference.
	past bool
	// generated are the names that the API server chose.
	generated map[string]string
}

var (
	runID = regexp.MustCompile(`crash-\d{4}`)
	// in a name that is too long only its beginning, and a digest
	uid = regexp.MustCompile(`([0-9a-f]{8}(?:-[0-9a-f]{4}){3})-(?:[0-9a-f]{12}|[0-9a-f]{5}\b)`)
	// cut is the begin of a UID in a name that is longer still, and a digest.
	cut   = regexp.MustCompile(`\b[0-9a-f]{8}(?:-[0-9a-f]{1,4}){1,3}-[0-9a-f]{5}\b`)
	hash  = regexp.MustCompile(`[0-9a-f]{10,}`)
	asked = regexp.MustCompile(`request-[a-z0-9]{5}\b`) // the name of a ClusterRegistration that may be gone
	// encoded are bytes, and the nonce of a request: random letters and the time.
	encoded = regexp.MustCompile(`[A-Za-z0-9+/]{40,}={0,2}|\b[a-z0-9]{37}\.\d{16}\b`)
	// revision is how often a release was deployed: once more if the deployer was killed at it.
	revision = regexp.MustCompile(`(/(?:web(?:-[abc])?|fleet-agent):|release\.v1\.(?:web(?:-[abc])?|fleet-agent)\.v)\d+`)
	// podOf are the names of the agent's ReplicaSets and Pods, which are made of digests
	// and letters by chance.
	podOf = regexp.MustCompile(`\bfleet-agent(-[bcdf-hj-np-tv-z2-9]{5,10}){1,2}\b`)
	when  = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z`)
)

func (w words) text(s string) string {
	for name, as := range w.generated {
		s = strings.ReplaceAll(s, name, as)
	}
	s = strings.ReplaceAll(s, w.id, "$RUN")
	s = uid.ReplaceAllStringFunc(s, func(found string) string {
		if w.past || w.live[found] || w.live[uid.FindStringSubmatch(found)[1]] {
			return "$UID"
		}
		return "$UID-OF-NOTHING"
	})
	s = cut.ReplaceAllString(s, "$$UID")
	s = podOf.ReplaceAllString(revision.ReplaceAllString(s, "${1}N"), "fleet-agent-*")
	s = encoded.ReplaceAllString(s, "$$BYTES") // first, because by chance ten letters of it are digits of a hash
	s = asked.ReplaceAllString(hash.ReplaceAllString(s, "$$HASH"), "request-*")
	return when.ReplaceAllString(s, "$$TIME")
}

// counters are fields that say how often something was written, which a disturbed
// run may do more often.
var counters = []string{
	"resourceVersion", "generation", "observedGeneration", "managedFields", "uid", "creationTimestamp", "muster/hub-version", "secretVersion",
	"firstSeenVersion", "deployment.kubernetes.io/revision",
}

// late are fields that are counted or reported only every ten seconds, so that an undisturbed run
// may have ended before. Registration tokens count their uses. Members report their namespaces,
// here the namespaces of all runs. Members also report the error of their clocks, on one machine
// the time of a heartbeat. A deployer writes the note of compared objects in a release at most once
// a minute, and the next one at once.
var late = []string{"used", "registrations", "lastUsed", "namespaces", "clockSkewSeconds", "heartbeatDelay", "muster-compared"}

// object is how an object is but for times and counters. Of a Secret the keys are told, because the
// values are keys and tokens; of a Lease that it is there, because it is renewed all the time.
func (w words) object(o unstructured.Unstructured) any {
	content := o.DeepCopy().Object
	switch o.GetKind() {
	case "Secret":
		// of a release: its revision, and when it was written first and last, as far as Helm keeps that
		for _, label := range []string{"version", "createdAt", "modifiedAt"} {
			unstructured.RemoveNestedField(content, "metadata", "labels", label)
		}
		for _, part := range []string{"data", "stringData"} {
			if data, ok := content[part].(map[string]any); ok {
				for key := range data {
					data[key] = "$DATA"
				}
			}
		}
	case "Lease":
		delete(content, "spec")
	}
	return w.value(content)
}

// condition is the type of a condition, of which the order in the list says nothing,
// and "" of all else.
func condition(v any) string {
	fields, _ := v.(map[string]any)
	kind, _ := fields["type"].(string)
	return kind
}

// counted are the counts of resources but those that are 0, which are written only if
// they were not before.
func counted(v any) any {
	counts, ok := v.(map[string]any)
	if ok {
		maps.DeleteFunc(counts, func(_ string, count any) bool { return count == int64(0) })
	}
	return v
}

func (w words) value(v any) any {
	switch v := v.(type) {
	case map[string]any:
		made := map[string]any{}
		for key, value := range v {
			if key == "resourceCounts" {
				value = counted(value)
			}
			if key == "unavailable" && value == int64(0) { // of a Bundle: written only after another value, too
				continue
			}
			if !slices.Contains(counters, key) && !slices.Contains(late, key) {
				made[w.text(key)] = w.value(value)
			}
		}
		return made
	case []any:
		made := []any{}
		for _, value := range v {
			made = append(made, w.value(value))
		}
		slices.SortStableFunc(made, func(a, b any) int { return strings.Compare(condition(a), condition(b)) })
		return made
	case string:
		return w.text(v)
	}
	return v
}
