package release

import (
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

func TestOnlyFieldsThatCannotBeChangedLetAnObjectBeReplaced(t *testing.T) {
	invalid := func(all ...*field.Error) error {
		return apierrors.NewInvalid(schema.GroupKind{Kind: "ConfigMap"}, "web", all)
	}
	at := field.NewPath("spec")
	for name, row := range map[string]struct {
		err  error
		want []string
	}{
		"an immutable field": {invalid(field.Invalid(at.Child("selector"), "x", "field is immutable")), []string{"spec.selector"}},
		"a ConfigMap that is immutable": {
			invalid(field.Forbidden(field.NewPath("data"), "field is immutable when `immutable` is set")), []string{"data"},
		},
		"the address of a Service": {invalid(field.Invalid(at.Child("clusterIPs").Index(0), "x", "may not change once set")),
			[]string{"spec.clusterIPs[0]"}},
		"a StatefulSet": {
			invalid(field.Forbidden(at, "updates to statefulset spec for fields other than 'replicas', 'ordinals' are forbidden")), []string{"spec"},
		},
		"the role of a binding": {invalid(field.Invalid(field.NewPath("roleRef"), "x", "cannot change roleRef")), []string{"roleRef"}},
		"one of two": {invalid(field.Invalid(at.Child("a"), "x", "field is immutable"), field.Required(at.Child("b"), "")),
			nil},
		"what is invalid by itself": {invalid(field.Required(at, "")), nil},
		"a webhook that denies as invalid": {&apierrors.StatusError{ErrStatus: metav1.Status{Reason: metav1.StatusReasonInvalid, Code: 422,
			Message: "it is immutable"}}, nil},
		"a policy that denies as invalid": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Reason: metav1.StatusReasonInvalid, Code: 422, Details: &metav1.StatusDetails{
				Causes: []metav1.StatusCause{{Message: "it is immutable"}},
			},
		}}, nil},
		"a webhook that does not answer": {apierrors.NewInternalError(errors.New("failed calling webhook: immutable")), nil},
		"a policy or a quota": {apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "web", errors.New("immutable")),
			nil},
		"a conflict": {apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, "web", errors.New("immutable")),
			nil},
		"no answer": {errors.New("connection refused"), nil},
	} {
		if diff := cmp.Diff(row.want, immutable(row.err)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestWhatHoldsDataOrIsSomebodyElsesIsNotReplaced(t *testing.T) {
	s := Summary{Namespace: "shop", Name: "web"}
	object := func(group, kind string, annotations map[string]string, fields ...string) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a"}}}
		o.SetGroupVersionKind(schema.GroupVersionKind{Group: group, Version: "v1", Kind: kind})
		marks := map[string]string{"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"}
		maps.Copy(marks, annotations)
		o.SetAnnotations(marks)
		if len(fields) > 0 {
			if err := unstructured.SetNestedField(o.Object, fields[len(fields)-1], fields[:len(fields)-1]...); err != nil {
				t.Fatal(err)
			}
		}
		return o
	}
	keep := map[string]string{"helm.sh/resource-policy": "keep"}
	plain := object("", "ConfigMap", nil)
	deleting := object("", "ConfigMap", nil)
	deleting.SetDeletionTimestamp(&metav1.Time{Time: time.Now()})
	for name, row := range map[string]struct {
		found, manifest *unstructured.Unstructured
		why             string
	}{
		"a ConfigMap":   {plain, plain, ""},
		"a StatefulSet": {object("apps", "StatefulSet", nil), plain, ""},
		"a StatefulSet with claims": {object("apps", "StatefulSet", nil, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted", "Delete"),
			plain, "its PersistentVolumeClaims would be deleted"},
		"a Namespace": {object("", "Namespace", nil), plain, "the contents of the Namespace"},
		"a claim":     {object("", "PersistentVolumeClaim", nil), plain, "the contents of the PersistentVolumeClaim"},
		"a volume":    {object("", "PersistentVolume", nil), plain, "the contents of the PersistentVolume"},
		"a definition": {object("apiextensions.k8s.io", "CustomResourceDefinition", nil), plain,
			"the contents of the CustomResourceDefinition"},
		"kept by somebody":  {object("", "ConfigMap", keep), plain, "keep"},
		"kept by its chart": {plain, object("", "ConfigMap", keep), "keep"},
		"of another release": {object("", "ConfigMap", map[string]string{"meta.helm.sh/release-name": "other"}), plain,
			"not of release shop/web"},
		"being deleted": {deleting, plain, "being deleted"},
	} {
		if why := whyKept(s, row.found, row.manifest); (why == "") != (row.why == "") || !strings.Contains(why, row.why) {
			t.Errorf("%s: %q", name, why)
		}
	}
}
