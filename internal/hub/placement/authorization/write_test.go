package authorization

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/yaml"
)

func TestAWrappedObjectTakesTheRightsToWriteIt(t *testing.T) {
	const rbac = "rbac.authorization.k8s.io"
	of := func(group, resource string) schema.GroupVersionResource {
		return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
	}
	for _, c := range []struct {
		name, object string
		resource     schema.GroupVersionResource
		want         string
	}{
		{
			"a quota", "{kind: ResourceQuota, metadata: {name: q, namespace: shop}}", of("", "resourcequotas"),
			"create resourcequotas in namespace shop; update resourcequotas in namespace shop",
		},
		{
			"a Namespace", "{kind: Namespace, metadata: {name: q}}", of("", "namespaces"),
			"create namespaces cluster-wide; update namespaces cluster-wide",
		},
		{"a kind that the hub does not serve", "{kind: Widget, metadata: {name: q, namespace: shop}}", UnknownResource(schema.GroupVersionKind{
			Group: "example.com", Version: "v1", Kind: "Widget",
		}),
			"create *.example.com in namespace shop; update *.example.com in namespace shop"},
		{"a ClusterRole", "{kind: ClusterRole, metadata: {name: all}}", of(rbac, "clusterroles"),
			"create clusterroles.rbac.authorization.k8s.io cluster-wide; update clusterroles.rbac.authorization.k8s.io cluster-wide; escalate " +
				"clusterroles.rbac.authorization.k8s.io all"},
		{"a RoleBinding", "{kind: RoleBinding, metadata: {name: b, namespace: shop}, roleRef: {kind: ClusterRole, name: cluster-admin}}",
			of(rbac, "rolebindings"),
			"create rolebindings.rbac.authorization.k8s.io in namespace shop; update rolebindings.rbac.authorization.k8s.io in namespace shop; " +
				"bind clusterroles.rbac.authorization.k8s.io cluster-admin in namespace shop"},
		{"a RoleBinding of OpenShift", "{kind: RoleBinding, metadata: {name: b, namespace: shop}, roleRef: {name: cluster-admin}}",
			of("authorization.openshift.io", "rolebindings"),
			"create rolebindings.authorization.openshift.io in namespace shop; update rolebindings.authorization.openshift.io in namespace shop; " +
				"bind clusterroles.rbac.authorization.k8s.io in namespace shop; bind roles.rbac.authorization.k8s.io in namespace shop"},
		{"a kind named as one of RBAC", "{kind: Role, metadata: {name: b, namespace: shop}}", of("example.com", "roles"),
			"create roles.example.com in namespace shop; update roles.example.com in namespace shop"},
	} {
		o := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(c.object), &o.Object); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, right := range ToCreate(c.resource, o) {
			got = append(got, right.String())
		}
		if diff := cmp.Diff(c.want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func TestTheFirstRightThatAnAuthorLacksIsNamed(t *testing.T) {
	var failure error
	a, b := Right{Verb: "update", Resource: secrets, Namespace: "shop", Name: "a"}, Right{
		Verb: "delete", Resource: secrets, Namespace: "shop", Name: "b",
	}
	for _, c := range []struct {
		name    string
		allowed map[string]bool
		want    *Right
		asked   int
	}{
		{"everything", map[string]bool{"eve: * *.* /": true}, nil, 1},
		{"all of a kind", map[string]bool{"eve: update secrets. shop/": true, "eve: delete secrets. shop/": true}, nil, 3},
		{"just these", map[string]bool{"eve: update secrets. shop/a": true, "eve: delete secrets. shop/b": true}, nil, 5},
		{"another verb", map[string]bool{"eve: update secrets. shop/": true, "eve: get secrets. shop/b": true}, &b, 4},
		{"another object", map[string]bool{"eve: update secrets. shop/b": true}, &a, 3},
	} {
		client, questions := asked(c.allowed, &failure)
		got, err := NewReviewer(client, clocktesting.NewFakePassiveClock(time.Now())).Missing(t.Context(), eve, []Right{a, b})
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil || len(*questions) != c.asked {
			t.Errorf("%s: %v, asked are %v; lacking is (-want +got):\n%s", c.name, err, *questions, diff)
		}
	}
	failure = errors.New("the server is busy")
	client, _ := asked(nil, &failure)
	var unanswered *UnansweredError
	if got, err := NewReviewer(client, clocktesting.NewFakePassiveClock(time.Now())).Missing(t.Context(), eve, []Right{a}); got != nil ||
		!errors.As(err, &unanswered) {
		t.Errorf("if nothing is answered: %v, %v", got, err)
	}
}
