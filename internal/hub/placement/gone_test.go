package placement

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/hub/runtime/controller"
)

// TestNoMemberGetsItsFirstWorkOfAPlacementThatARestoreHasTakenAway has the cache of placements know
// less than the API server.
func TestNoMemberGetsItsFirstWorkOfAPlacementThatARestoreHasTakenAway(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := placement.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	crp := func(uid types.UID) *placement.ClusterResourcePlacement {
		return &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "later", UID: uid}}
	}
	has := func(objects ...client.Object) client.Reader {
		return fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).Build()
	}
	edge := target{name: "edge", namespace: "fleet-member-edge"}
	with := map[string]*currentWorks{edge.namespace: {works: []*placement.Work{{}}}}
	for name, row := range map[string]struct {
		live    client.Reader
		current map[string]*currentWorks
		write   []target
		gone    bool
	}{
		"it is there":                        {has(crp("u")), nil, []target{edge}, false},
		"it is not there":                    {has(), nil, []target{edge}, true},
		"another one has its name":           {has(crp("other")), nil, []target{edge}, true},
		"the member has no Work any more":    {has(), map[string]*currentWorks{edge.namespace: {}}, []target{edge}, true},
		"the member has Works, nobody asks":  {nil, with, []target{edge}, false},
		"nothing is written, so nobody asks": {nil, nil, nil, false},
	} {
		c := &Controller{Deps: Deps{Deps: controller.Deps{Live: row.live}}}
		gone, err := c.isGone(t.Context(), ofCRP(crp("u")), observed{current: row.current}, decision{plan: rolloutPlan{write: row.write}})
		if err != nil || gone != row.gone {
			t.Errorf("%s: gone %t, %v", name, gone, err)
		}
	}
}
