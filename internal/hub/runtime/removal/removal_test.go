package removal

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

func TestMany(t *testing.T) {
	for _, row := range []struct {
		lose, have, share int
		many              bool
	}{
		{0, 0, 20, false}, {1, 1, 20, false}, {2, 2, 20, true}, {5, 5, 20, true}, {5, 6, 20, false}, {6, 6, 20, true}, {6, 29, 20, true},
		{6, 30, 20, false}, {200, 1000, 20, false}, {201, 1000, 20, true},
		{5, 6, 0, false}, {5, 5, 100, false}, {6, 1000, 0, true}, {500, 1000, 50, false}, {501, 1000, 50, true}, {1000, 1000, 99, true},
		{1000, 1000, 100, false},
	} {
		if got := Many(row.lose, row.have, row.share); got != row.many {
			t.Errorf("%d of %d are many beside a share of %d: %t", row.lose, row.have, row.share, got)
		}
	}
}

func TestAShareIsANumberFromNothingToAll(t *testing.T) {
	for text, want := range map[string]int{
		"0": 0, "50": 50, " 7 ": 7, "100": 100, "101": -1, "-1": -1, "": -1, "20%": -1, "1e1": -1, "0.5": -1, "half": -1,
		"99999999999999999999": -1,
	} {
		got, ok := ParseShare(text)
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
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
		"that a record is gone":           {RecordGone, true, true},
	} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(work.DeepCopy()).Build()
		err := Delete(t.Context(), c, work.DeepCopy(), row.cause)
		gone := apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(work), &placement.Work{}))
		if gone == row.stays || (err != nil) != row.fails {
			t.Errorf("%s: gone %t, %v", name, gone, err)
		}
	}
}

func TestANamespaceGoesOnlyWhenItsRecordIsGone(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "cluster-a", UID: "u"}}
	for cause, goes := range map[Cause]bool{RecordGone: true, SourceDeleted: false, "": false} {
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(namespace.DeepCopy()).Build()
		err := Namespace(t.Context(), c, namespace.DeepCopy(), cause)
		gone := apierrors.IsNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(namespace), &corev1.Namespace{}))
		if gone != goes || (err == nil) != goes {
			t.Errorf("%q: gone %t, %v", cause, gone, err)
		}
	}
}

// TestAWorkThatItsAgentRetainsIsMarkedBeforeItGoes checks the mark on a Work. Without the mark, the
// agent would query whether a user deleted the Work by mistake.
func TestAWorkThatItsAgentRetainsIsMarkedBeforeItGoes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := placement.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for name, row := range map[string]struct {
		annotations map[string]string
		cause       Cause
		marked      bool
	}{
		"of Muster's agent":    {map[string]string{placement.AnnotationRetains: "true"}, MemberLeaves, true},
		"of KubeFleet's agent": {nil, MemberLeaves, false},
		"that is evicted": {
			map[string]string{placement.AnnotationRetains: "true", placement.AnnotationEvicted: "u"}, Evicted, false,
		},
		"which there is no cause to take": {map[string]string{placement.AnnotationRetains: "true"}, "Forbidden", false},
	} {
		work := &placement.Work{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-member-a", Name: "web-work", UID: "u",
			Annotations: row.annotations,
			Finalizers:  []string{placement.FinalizerWork}}}
		c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(work.DeepCopy()).Build()
		err := DeleteWork(t.Context(), c, work.DeepCopy(), row.cause)
		if getErr := c.Get(t.Context(), client.ObjectKeyFromObject(work), work); getErr != nil {
			t.Fatal(getErr)
		}
		if marked := work.Annotations[placement.AnnotationRemoved] != ""; marked != row.marked {
			t.Errorf("%s: it is marked: %t", name, marked)
		}
		if goes := work.DeletionTimestamp != nil; goes == (err != nil) || goes != known[row.cause] {
			t.Errorf("%s: it goes: %t, %v", name, goes, err)
		}
	}
}
