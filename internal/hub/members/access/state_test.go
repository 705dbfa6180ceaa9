package access

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/settings"
)

var on = settings.Access{ArgoCD: "argocd", Flux: "flux-system", Inventory: "kueue-system", Workspaces: []string{"clusters"}}

func TestDecide(t *testing.T) {
	shared := func(change ...func(*observed)) observed {
		o := observed{member: member{
			key: types.NamespacedName{Namespace: "clusters", Name: "web"}, record: &fleet.Cluster{}, found: true,
			consent: []string{"flux", "argocd"}, source: types.NamespacedName{Namespace: "clusters", Name: "web-kubeconfig"},
		}, tool: tools(on)[0], listed: true}
		for _, c := range change {
			c(&o)
		}
		return o
	}
	missing := func(o *observed) { o.found, o.consent = false, nil }
	annotated := func(o *observed) {
		o.record = &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fleet.AnnotationAccessSecret: "a"}}}
	}
	for _, c := range []struct {
		name     string
		observed observed
		want     action
		reason   string
	}{
		{"with consent and setting the tool gets the kubeconfig", shared(), apply, ""},
		{"a tool that is off gets none", shared(func(o *observed) { o.tool.namespace = "" }), remove, ""},
		{"nor one that the owner does not list", shared(func(o *observed) { o.consent = []string{"flux"} }), remove, ""},
		{"nor without any consent", shared(func(o *observed) { o.consent = nil }), remove, ""},
		{"a member that is gone, leaves or is revoked has none", shared(func(o *observed) { o.record = nil }), remove, ""},
		{"a workspace that is not listed has none", shared(func(o *observed) { o.listed = false }), remove, reasons.AccessWithheld},
		{"a namespace of the fleet gets none", shared(func(o *observed) { o.target = "it is a workspace" }), remove, reasons.AccessWithheld},
		{"a faulty kubeconfig takes nothing away", shared(func(o *observed) { o.problem = "it has expired" }), keep, reasons.AccessWithheld},
		{"unless the consent is gone, too", shared(func(o *observed) { o.problem, o.consent = "it has expired", nil }), remove, ""},
		{"the second member with an API server gets none", shared(func(o *observed) { o.rival = true }), remove, reasons.AccessWithheld},
		{"a missing kubeConfigSecret is said by the import", shared(missing), remove, ""},
		{"a missing Secret of the annotation is said here", shared(missing, annotated), remove, reasons.AccessWithheld},
		{"but not while the tool is off", shared(missing, annotated, func(o *observed) { o.tool.namespace = "" }), remove, ""},
	} {
		got := decide(c.observed)
		if got.action != c.want || got.reason != c.reason || (got.message == "") != (c.reason == "") {
			t.Errorf("%s: got %+v, want %s and %q", c.name, got, c.want, c.reason)
		}
	}
}

func TestWhereTheKubeconfigOfAMemberIs(t *testing.T) {
	named := map[string]string{fleet.AnnotationAccessSecret: "read-only"}
	annotated := metav1.ObjectMeta{Namespace: "clusters", Name: "web", Annotations: named}
	imported := fleet.ClusterSpec{KubeConfigSecret: "web-kubeconfig", KubeConfigSecretNamespace: "fleet-default"}
	for want, record := range map[string]client.Object{
		"/": &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"}},
		"fleet-default/web-kubeconfig": &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "web"},
			Spec: imported},
		"clusters/read-only": &fleet.Cluster{ObjectMeta: annotated, Spec: imported},
		"system/read-only":   &clusterv1beta1.MemberCluster{ObjectMeta: annotated},
	} {
		if got := sourceOf(record, "system").String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestSecretsAtPlacesOfEarlierSettingsAreStrays(t *testing.T) {
	secret := func(namespace, name, tool string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name,
			Labels: map[string]string{fleet.LabelAccess: tool}}}
	}
	o := observed{tool: tools(on)[0], member: member{key: types.NamespacedName{Namespace: "clusters", Name: "web"}}}
	o.present = []metav1.PartialObjectMetadata{
		secret("argocd", "argocd-clusters.web", "argocd"), secret("earlier", "argocd-clusters.web", "argocd"),
		secret("flux-system", "flux-clusters.web", "flux"),
	}
	current, strays := o.secrets()
	if current == nil || current.Namespace != "argocd" || len(strays) != 1 || strays[0].GetNamespace() != "earlier" {
		t.Errorf("current %v, strays %v", current, strays)
	}
}

func TestOneOfTwoMembersWithAnAPIServerIsEarlier(t *testing.T) {
	a := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "a", CreationTimestamp: metav1.Unix(2, 0)}}
	b := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "b", CreationTimestamp: metav1.Unix(1, 0)}}
	c := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: "c", CreationTimestamp: metav1.Unix(1, 0)}}
	if isEarlier(a, b) || !isEarlier(b, a) || !isEarlier(b, c) || isEarlier(c, b) {
		t.Error("two Secrets have no order")
	}
	var w waiting
	w.add("server", types.NamespacedName{Name: "m"})
	if got := w.of("server"); len(got) != 1 || got[0].Name != "m" || len(w.of("server")) != 0 || len(w.of("")) != 0 {
		t.Errorf("%v waits", got)
	}
}

func TestLabelsOfTheFleetAndOfTheToolsAreNotCopied(t *testing.T) {
	for key, want := range map[string]bool{
		"env": false, "example.com/tier": false, "argocd.argoproj.io/secret-type": true, "kustomize.toolkit.fluxcd.io/prune": true,
		"fleet.cattle.io/managed": true, "muster/workspace": true,
	} {
		if reserved(key) != want {
			t.Errorf("%s: want %t", key, want)
		}
	}
}

func TestNoMessageNamesAnotherMember(t *testing.T) {
	m := member{record: &fleet.Cluster{}, found: true, consent: []string{"argocd"}}
	o := observed{tool: tools(on)[0], listed: true, rival: true, member: m}
	if got := decide(o).message; !strings.HasPrefix(got, "Argo CD does not get the kubeconfig of this member: another member gave it") {
		t.Error(got)
	}
}
