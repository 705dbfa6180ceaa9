package selection

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// served is a hub that serves a few kinds.
func served() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, meta.RESTScopeRoot)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Secret"}, meta.RESTScopeNamespace)
	return mapper
}

const (
	inApp = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: e, namespace: app}, data: {m: " +
		"%}}"
	inCluster = "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ClusterResourceEnvelope, metadata: {name: e}, data: {m: %}}"
)

func TestWhatIsWrappedIsPlacedInsteadOfItsEnvelopeOrRefused(t *testing.T) {
	for _, c := range []struct{ name, envelope, manifest, problem string }{
		{"an object of the envelope's namespace", inApp, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app}}", ""},
		{"one of a kind that the hub does not serve", inApp, "{apiVersion: x.com/v1, kind: Widget, metadata: {name: c, namespace: app}}", ""},
		{"a cluster-scoped object", inCluster, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: c}}", ""},
		{"one of a kind that the hub does not serve, cluster-scoped", inCluster, "{apiVersion: x.com/v1, kind: Widget, metadata: {name: c}}", ""},
		{"no kind", inApp, "{apiVersion: v1, metadata: {name: c, namespace: app}}", "no apiVersion or no kind"},
		{"no version", inApp, "{kind: ConfigMap, metadata: {name: c, namespace: app}}", "no apiVersion or no kind"},
		{"no name", inApp, "{apiVersion: v1, kind: ConfigMap, metadata: {generateName: c-, namespace: app}}", "no metadata.name"},
		{
			"labels that are no texts", inApp, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app, labels: {a: 1}}}",
			"metadata.labels.a is a number, and Kubernetes takes only a text: put the value in quotes",
		},
		{"a list", inApp, "{apiVersion: v1, kind: List, metadata: {name: c, namespace: app}, items: []}", "it is a list"},
		{"no namespace", inApp, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c}}", "set it to the envelope's namespace app"},
		{"another namespace", inApp, "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: other}}", "not the envelope's " +
			"namespace app"},
		{
			"another namespace, of a kind that the hub does not serve", inApp,
			"{apiVersion: x.com/v1, kind: Widget, metadata: {name: c, namespace: other}}", "not the envelope's namespace app",
		},
		{
			"a cluster-scoped object in a ResourceEnvelope", inApp, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: " +
				"{name: c}}", "a ClusterRole is cluster-scoped: put it into a ClusterResourceEnvelope",
		},
		{
			"also if it says that it is in the namespace", inApp, "{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: " +
				"c, namespace: app}}", "a ClusterRole is cluster-scoped: put it into a ClusterResourceEnvelope",
		},
		{
			"also of a kind that the hub does not serve", inApp, "{apiVersion: x.com/v1, kind: Widget, metadata: {name: c}}",
			"no metadata.namespace",
		},
		{"a Namespace in a ResourceEnvelope", inApp, "{apiVersion: v1, kind: Namespace, metadata: {name: app}}", "a Namespace is cluster-scoped"},
		{
			"an object in a namespace in a ClusterResourceEnvelope", inCluster,
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app}}", "put it into a ResourceEnvelope of that namespace",
		},
		{
			"also of a kind that the hub does not serve, with a namespace", inCluster,
			"{apiVersion: x.com/v1, kind: Widget, metadata: {name: c, namespace: app}}", "a ClusterResourceEnvelope is for cluster-scoped objects",
		},
		{"a Namespace", inCluster, "{apiVersion: v1, kind: Namespace, metadata: {name: shop}}", ""},
		{"a reserved Namespace", inCluster, "{apiVersion: v1, kind: Namespace, metadata: {name: kube-system}}", "the namespace is reserved"},
		{
			"an object of the fleet", inCluster, "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: AppliedWork, metadata: {name: c}}",
			"objects of the fleet itself",
		},
		{
			"an envelope in an envelope", inApp, "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: c, " +
				"namespace: app}}", "objects of the fleet itself",
		},
		{
			"a name that no object can have", inApp, "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + strings.Repeat("x", 1000) +
				", namespace: app}}", "longer than Kubernetes allows",
		},
	} {
		got, err := (&Selector{Mapper: served()}).Unwrap([]*unstructured.Unstructured{object(t, strings.Replace(c.envelope, "%", c.manifest, 1))},
			nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.problem == "" {
			if len(got.Objects) != 1 || len(got.Refused) != 0 || isEnvelope(got.Objects[0]) || len(got.Envelopes) != 1 {
				t.Errorf("%s: placed are %v, refused %v", c.name, got.Objects, got.Refused)
			}
			continue
		}
		if len(got.Objects) != 0 || len(got.Refused) != 1 || !strings.Contains(got.Refused[0].Condition.Message, c.problem) {
			t.Errorf("%s: placed are %v, refused %v; want %q", c.name, got.Objects, got.Refused, c.problem)
			continue
		}
		r := got.Refused[0]
		if r.Envelope == nil || r.Envelope.Name != "e" || r.Condition.Type != "Applied" || r.Condition.Status != "False" ||
			len(r.Name) > maxName+len("...") {
			t.Errorf("%s: it is shown as %+v", c.name, r)
		}
	}
}

func TestEnvelopesAndWhatIsSelectedBesideThemArePlacedOnce(t *testing.T) {
	wrap := func(name, data string) *unstructured.Unstructured {
		return object(t, "{apiVersion: placement.kubernetes-fleet.io/v1beta1, kind: ResourceEnvelope, metadata: {name: "+name+
			", namespace: app}, data: "+data+"}")
	}
	configMap := func(name, more string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + ", namespace: app" + more + "}}"
	}
	got, err := (&Selector{Mapper: served()}).Unwrap([]*unstructured.Unstructured{
		object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: app}}"), object(t, configMap("plain", "")),
		wrap("one", "{b: "+configMap("b", ", uid: u, resourceVersion: '1', ownerReferences: [{kind: X}]")+
			", a: {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: app}, stringData: {p: s3cret}}}"),
		wrap("two", "{again: "+configMap("b", "")+", plain: "+configMap("plain", "")+"}"),
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var placed, refused []string
	for _, o := range got.Objects {
		placed = append(placed, o.GetKind()+" "+o.GetName())
		if o.GetUID() != "" || o.GetResourceVersion() != "" || len(o.GetOwnerReferences()) > 0 {
			t.Errorf("%s has what only a server can know", o.GetName())
		}
	}
	for _, r := range got.Refused {
		refused = append(refused, r.Envelope.Name+": "+r.Name+" "+r.Condition.Message)
	}
	if diff := cmp.Diff([]string{"Namespace app", "Secret s", "ConfigMap b", "ConfigMap plain"}, placed); diff != "" {
		t.Errorf("placed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{
		`two: b "again" in its data cannot be placed: the placement has this object already: leave one of them out`,
		`two: plain "plain" in its data cannot be placed: the placement has this object already: leave one of them out`,
	}, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	in := got.Envelopes[placement.ResourceIdentifier{Version: "v1", Kind: "Secret", Namespace: "app", Name: "s"}]
	if diff := cmp.Diff(placement.EnvelopeIdentifier{Name: "one", Namespace: "app", Type: "ResourceEnvelope"}, in); diff != "" {
		t.Errorf("the Secret is in (-want +got):\n%s", diff)
	}
}

type broken struct{ meta.RESTMapper }

func (broken) RESTMapping(schema.GroupKind, ...string) (*meta.RESTMapping, error) {
	return nil, errors.New("no answer")
}

func TestNothingIsTakenForPlaceableWhileTheHubCannotSayWhatItIs(t *testing.T) {
	envelope := object(t, strings.Replace(inApp, "%", "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app}}", 1))
	if _, err := (&Selector{Mapper: broken{}}).Unwrap([]*unstructured.Unstructured{envelope}, nil); err == nil {
		t.Error("the manifest is placed")
	}
}

func TestWithoutEnvelopesNothingIsCopied(t *testing.T) {
	objects := []*unstructured.Unstructured{object(t, "{apiVersion: v1, kind: Namespace, metadata: {name: app}}")}
	got, err := (&Selector{Mapper: broken{}}).Unwrap(objects, nil)
	if err != nil || &got.Objects[0] != &objects[0] {
		t.Errorf("it is %v, %v", got, err)
	}
}

// TestWhatAnAuthorMayNotWrapIsLeftOutAndTheRestIsPlaced has a reviewer that refuses Secrets.
func TestWhatAnAuthorMayNotWrapIsLeftOutAndTheRestIsPlaced(t *testing.T) {
	envelope := object(t, `
apiVersion: placement.kubernetes-fleet.io/v1beta1
kind: ResourceEnvelope
metadata: {name: e, namespace: app, annotations: {muster/author: eve}}
data:
  a: {apiVersion: v1, kind: Secret, metadata: {name: s, namespace: app}}
  b: {apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: app}}
  c: {apiVersion: example.com/v1, kind: Widget, metadata: {name: w, namespace: app}}
  d: {apiVersion: v1, kind: Secret, metadata: {name: elsewhere, namespace: kube-system}}
`)
	var asked []string
	mayWrap := func(from, wrapped *unstructured.Unstructured, resource schema.GroupVersionResource) (reason, message string, err error) {
		asked = append(asked, from.GetAnnotations()["muster/author"]+" "+resource.GroupResource().String())
		if wrapped.GetKind() == "Secret" {
			return "Refused", "no Secrets", nil
		}
		return "", "", nil
	}
	got, err := (&Selector{Mapper: served()}).Unwrap([]*unstructured.Unstructured{envelope}, mayWrap)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"eve secrets", "eve configmaps", "eve *.example.com"}, asked); diff != "" {
		t.Errorf("asked is (-want +got):\n%s", diff)
	}
	withheld := []WithheldObject{{
		placement.ResourceIdentifier{Version: "v1", Kind: "Secret", Namespace: "app", Name: "s"}, "Refused", "no Secrets",
	}}
	if diff := cmp.Diff(withheld, got.Withheld); diff != "" || len(got.Objects) != 2 || len(got.Refused) != 1 {
		t.Errorf("%d objects are placed, %d refused; withheld (-want +got):\n%s", len(got.Objects), len(got.Refused), diff)
	}
	unknown := errors.New("the server is busy")
	if _, err := (&Selector{Mapper: served()}).Unwrap([]*unstructured.Unstructured{envelope},
		func(_, _ *unstructured.Unstructured, _ schema.GroupVersionResource) (reason, message string, err error) {
			return "", "", unknown
		}); !errors.Is(err, unknown) {
		t.Errorf("if the rights are unknown: %v", err)
	}
}
