package lifecycle

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// TestAWorkspaceIsLabelledWhileAClusterIsPresent lets Clusters come and leave in one workspace. The
// second hub has just started and knows no Cluster yet.
func TestAWorkspaceIsLabelledWhileAClusterIsPresent(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cl := fake.NewClientBuilder().WithScheme(scheme).WithObjects(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}).Build()
	hub := func() *Controller { return &Controller{Deps: controller.Deps{Client: cl, Live: cl}} }
	cluster := func(name string) *fleet.Cluster {
		return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: name}}
	}
	step := func(what string, err error, want bool) {
		t.Helper()
		var workspace corev1.Namespace
		if readErr := cl.Get(t.Context(), client.ObjectKey{Name: "team"}, &workspace); err != nil || readErr != nil {
			t.Fatal(what, err, readErr)
		}
		if got := workspace.Labels[fleet.LabelHasMembers] == "true"; got != want {
			t.Errorf("%s: labelled %t, want %t", what, got, want)
		}
	}
	come := func(c *Controller, name string) error {
		if err := cl.Create(t.Context(), cluster(name)); err != nil {
			return err
		}
		return c.markWorkspace(t.Context(), cluster(name))
	}
	leave := func(c *Controller, name string) error {
		if err := cl.Delete(t.Context(), cluster(name)); err != nil {
			return err
		}
		return c.unmarkWorkspace(t.Context(), cluster(name))
	}
	first := hub()
	step("the first comes", come(first, "a"), true)
	step("another comes", come(first, "b"), true)
	step("one of two leaves", leave(first, "a"), true)
	step("the last leaves", leave(first, "b"), false)
	step("one comes again", come(first, "c"), true)
	step("one goes without its finalizer", cl.Delete(t.Context(), cluster("c")), true)
	step("the next comes", come(first, "d"), true)
	step("the last leaves, and another went before", leave(first, "d"), false)
	step("two come", come(first, "e"), true)
	step("two come", come(first, "f"), true)
	second := hub()
	step("one leaves after a restart", leave(second, "e"), true)
	step("the last leaves after a restart", leave(second, "f"), false)
}
