package release

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/muster-fleet/muster/internal/naming"
)

func TestLabelsThatAnEarlierVersionPatchedAreTheBundles(t *testing.T) {
	const created = `{"f:metadata":{"f:annotations":{".":{},"f:muster/made-for-bundle":{}},` +
		`"f:labels":{".":{},"f:kubernetes.io/metadata.name":{},"f:name":{},"f:team":{}}}}`
	by := func(manager string, operation metav1.ManagedFieldsOperationType) metav1.ManagedFieldsEntry {
		return metav1.ManagedFieldsEntry{Manager: manager, Operation: operation, FieldsV1: metav1.NewFieldsV1(created)}
	}
	for name, row := range map[string]struct {
		entry  metav1.ManagedFieldsEntry
		wanted map[string]string
		made   bool
		want   []string
	}{
		"of a namespace for the Bundle, all": {by(FieldManager, metav1.ManagedFieldsOperationUpdate), nil, true, []string{"f:labels f:team"}},
		"of another namespace, none":         {by(FieldManager, metav1.ManagedFieldsOperationUpdate), nil, false, nil},
		"of another namespace, the wanted ones": {
			by(FieldManager, metav1.ManagedFieldsOperationUpdate), texts(map[string]string{"team": "a", "name": "b"}, nil), false,
			[]string{"f:labels f:name", "f:labels f:team"},
		},
		"of another manager, none": {
			by("kubectl", metav1.ManagedFieldsOperationUpdate), texts(map[string]string{"team": "a"}, nil), true, nil,
		},
		"applied with a Namespace of a Bundle, none": {
			by(FieldManager, metav1.ManagedFieldsOperationApply), texts(map[string]string{"team": "a"}, nil), true, nil,
		},
	} {
		found := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{ManagedFields: []metav1.ManagedFieldsEntry{row.entry}}}
		rest, got := formerTexts(found, row.wanted, row.made)
		if diff := cmp.Diff(row.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		for _, entry := range rest {
			for path := range textsIn(fieldsOf(&entry)) {
				if slices.Contains(got, path) {
					t.Errorf("%s: %s has another owner, too", name, path)
				}
			}
		}
	}
}

func TestManagersOfNamespacesAreShortAndDiffer(t *testing.T) {
	long := strings.Repeat("a", 63)
	one, two := namespaceManager(long, long+"-1"), namespaceManager(long, long+"-2")
	if one == two || len(one) > maxManager || namespaceManager("fleet", "web") != "muster-namespace:fleet/web" {
		t.Errorf("they are %s and %s", one, two)
	}
	if got := managerIn(`conflict with "muster-namespace:fleet/web" using v1`); got != "Bundle web" {
		t.Errorf("it is named %s", got)
	}
	if got := managerIn(`conflict with "kubectl-label" using v1`); got != "field manager kubectl-label" {
		t.Errorf("it is named %s", got)
	}
}

// TestMarksOnAMemberNeverChange has golden vectors: objects on members carry these names.
func TestMarksOnAMemberNeverChange(t *testing.T) {
	long := namespaceManager(strings.Repeat("a", 63), strings.Repeat("b", 63))
	if want := "muster-namespace:" + strings.Repeat("a", 63) + "/" + strings.Repeat("b", 30) + "-c5a4058bb2e69bfd"; long != want {
		t.Errorf("the field manager is %s", long)
	}
	if got := naming.ObjectSetHash(setOf("shop")); got != "e3666daabb05e44dea1674e0e470cfd27d7a2f44" {
		t.Errorf("the label of the object set is %s", got)
	}
}
