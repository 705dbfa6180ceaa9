package agentbundle

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestTheBundleOfRancherFleetsAgentGoesOnceMustersActs(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "c-1", UID: "1"}}
	for name, row := range map[string]struct {
		ranchers bool
		state    State
		goes     bool
	}{
		"Muster's agent goes on with the other's credential":       {true, SharedCredential, true},
		"Rancher Fleet's agent acts":                               {true, ForeignAgent, false},
		"the hub manages no agents":                                {true, SwitchedOff, false},
		"a user's Bundle, and Muster's agent shares a credential":  {false, SharedCredential, false},
		"a user's Bundle, and the hub leaves the agent of another": {false, ForeignAgent, false},
	} {
		bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: naming.AgentBundle("c-1"), UID: "2"}}
		c := &Controller{&waves{Deps: controller.Deps{Client: fake.NewClientBuilder().WithScheme(scheme).WithObjects(bundle).Build()}}}
		o := observed{cluster: cluster, bundle: bundle.DeepCopy(), ranchers: row.ranchers}
		o.unmanaged = row.state
		if err := c.act(t.Context(), o, decision{state: row.state}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := c.Client.Get(t.Context(), client.ObjectKeyFromObject(bundle), bundle); apierrors.IsNotFound(err) != row.goes {
			t.Errorf("%s: %v", name, err)
		}
	}
}
