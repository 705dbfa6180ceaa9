package removal

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

func TestOnlyWhatWasFoundIsDeletedAndForACause(t *testing.T) {
	found := metav1.ObjectMeta{Name: "web", UID: "1", ResourceVersion: "7"}
	for name, row := range map[string]struct {
		found metav1.ObjectMeta
		cause Cause
		want  *metav1.Preconditions
	}{
		"by UID":                     {found, WorkGone, &metav1.Preconditions{UID: &found.UID}},
		"what is replaced, as it is": {found, Replaced, &metav1.Preconditions{UID: &found.UID, ResourceVersion: &found.ResourceVersion}},
		"without a cause":            {found, "", nil},
		"what was not looked at":     {metav1.ObjectMeta{Name: "web"}, WorkGone, nil},
	} {
		var with *metav1.DeleteOptions
		err := Delete(t.Context(), func(_ context.Context, name string, options metav1.DeleteOptions) error {
			if with = &options; name != "web" {
				t.Errorf("%s: %s is deleted", name, name)
			}
			return nil
		}, &row.found, row.cause)
		if row.want == nil {
			if err == nil || with != nil {
				t.Errorf("%s: it is deleted with %+v (%v)", name, with, err)
			}
			continue
		}
		want := &metav1.DeleteOptions{Preconditions: row.want, PropagationPolicy: ptr.To(metav1.DeletePropagationBackground)}
		if diff := cmp.Diff(want, with); diff != "" || err != nil {
			t.Errorf("%s (-want +got): %v\n%s", name, err, diff)
		}
	}
}
