package kube

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestWhatWasJustReadIsWrittenOnce counts the requests for one ConfigMap.
func TestWhatWasJustReadIsWrittenOnce(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "clusters", Name: "a", Labels: map[string]string{fleet.LabelManaged: "true"}}
	ours := &corev1.ConfigMap{ObjectMeta: meta}
	ours.UID = "1"
	theirs := ours.DeepCopy()
	theirs.Labels = nil
	for name, row := range map[string]struct {
		have     *corev1.ConfigMap
		creates  int
		applies  int
		refused  bool
		sentWith types.UID
	}{
		"there is none":         {have: nil, creates: 1},
		"it is the hub's":       {have: ours, applies: 1, sentWith: "1"},
		"it is another owner's": {have: theirs, creates: 1, refused: true},
	} {
		creates, applies, sentWith := 0, 0, types.UID("")
		server := fake.NewClientBuilder()
		if row.have != nil {
			server.WithObjects(row.have.DeepCopy())
		}
		counting := interceptor.NewClient(server.Build(), interceptor.Funcs{
			Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
				creates++
				return c.Create(ctx, o, options...)
			},
			Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
				applies++
				sentWith = o.(interface{ GetUID() types.UID }).GetUID()
				return nil
			},
		})
		have := row.have
		if have == nil {
			have = &corev1.ConfigMap{}
		}
		err := EnsureOver(t.Context(), counting, have, &corev1.ConfigMap{ObjectMeta: *meta.DeepCopy()})
		if refused := IsTaken(err); refused != row.refused || err != nil && !refused {
			t.Errorf("%s: %v", name, err)
		}
		if creates != row.creates || applies != row.applies || sentWith != row.sentWith {
			t.Errorf("%s: %d creates, %d applies with UID %q", name, creates, applies, sentWith)
		}
	}
}
