package removal

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestMany(t *testing.T) {
	for _, row := range []struct {
		lose, have int
		many       bool
	}{{0, 0, false}, {5, 5, false}, {6, 6, true}, {6, 29, true}, {6, 30, false}, {200, 1000, false}, {201, 1000, true}} {
		if got := Many(row.lose, row.have); got != row.many {
			t.Errorf("%d of %d are many: %t", row.lose, row.have, got)
		}
	}
}

func TestNothingGoesWithoutACause(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := placement.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-a", Name: "web-work", UID: "u"}}
	for name, row := range map[string]struct {
		cause Cause
		stays bool
		fails bool
	}{
		"no cause":                        {"", true, true},
		"a cause that nobody has defined": {"Forbidden", true, true},
		"a cause":                         {NotPicked, false, false},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(work.DeepCopy()).Build()
		err := Delete(t.Context(), c, work.DeepCopy(), row.cause)
		gone := apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(work), &placement.Work{}))
		if gone == row.stays || (err != nil) != row.fails {
			t.Errorf("%s: gone %t, %v", name, gone, err)
		}
	}
}
