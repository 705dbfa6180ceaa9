package release

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
)

// TestANamespaceThatAppearsMeanwhileIsCheckedAsItIs has another client create the namespace between
// the agent's read and its create. Only a fake API server can do so every time.
func TestANamespaceThatAppearsMeanwhileIsCheckedAsItIs(t *testing.T) {
	for name, row := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"with the labels that the options refuse": {map[string]string{"team": "other"}, "web"},
		"with others": {map[string]string{"team": "ours"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			kube := fake.NewClientset()
			kube.PrependReactor("create", "namespaces", func(k8stesting.Action) (bool, runtime.Object, error) {
				return false, nil, kube.Tracker().Add(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "web", Labels: row.labels}})
			})
			c := &Cluster{Kube: kube}
			request := Request{Bundle: "app", Workspace: "default", Release: "app", Namespace: "web"}
			request.Options.AllowedTargetNamespaceSelector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
				{Key: "team", Operator: metav1.LabelSelectorOpNotIn, Values: []string{"other"}},
			}}
			err := c.prepareNamespace(t.Context(), c, request, false)
			if (err == nil) != (row.want == "") || err != nil && !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "already exists") {
				t.Errorf("the namespace itself is the error: %v", err)
			}
		})
	}
}
