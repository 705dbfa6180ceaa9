package bundle

import (
	"context"
	"errors"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// TestASecretThatCannotBeReadHoldsBackOnlyItsCopies reads two Secrets. The API server cannot
// decrypt one of them.
func TestASecretThatCannotBeReadHoldsBackOnlyItsCopies(t *testing.T) {
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: name}, Data: map[string][]byte{"a": []byte(name)}}
	}
	damaged := errors.New("cannot decrypt")
	unreadable := ""
	live := fake.NewClientBuilder().WithObjects(secret("well"), secret("ill")).WithInterceptorFuncs(interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if key.Name == unreadable {
				return damaged
			}
			return c.Get(ctx, key, o, options...)
		},
	}).Build()
	c := &Controller{sources: &sourceWatch{watched: true}}
	c.Live = live
	well, ill := fleet.DownstreamResource{Kind: kindSecret, Name: "well"}, fleet.DownstreamResource{Kind: kindSecret, Name: "ill"}
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "web"}}
	b.Spec.DownstreamResources = []fleet.DownstreamResource{well, ill}
	state := c.computedFor(client.ObjectKeyFromObject(b))
	state.outcomes = map[types.UID]outcome{}
	load := func() {
		t.Helper()
		if err := c.loadSources(t.Context(), b, state); err != nil {
			t.Fatal(err)
		}
	}

	unreadable = "ill"
	load()
	if state.sources[well].digest == "" || !errors.Is(state.sources[ill].problem, damaged) || !errors.Is(state.unread, damaged) {
		t.Errorf("the sources are %+v, the error is %v", state.sources, state.unread)
	}
	unreadable = ""
	load() // again without an event
	before := state.sources[ill]
	if before.digest == "" || state.unread != nil {
		t.Errorf("the Secret that can be read again is %+v, the error %v", before, state.unread)
	}

	unreadable = "ill"
	c.sources.note(client.ObjectKeyFromObject(b))
	load()
	if state.sources[ill] != before || state.unread == nil {
		t.Errorf("the Secret that was read before is %+v, the error %v", state.sources[ill], state.unread)
	}
	o := &observed{bundle: b, targets: []target{
		{copies: []fleet.DownstreamResource{well}}, {copies: []fleet.DownstreamResource{well, ill}},
		{copies: []fleet.DownstreamResource{ill}}, {}, {copies: []fleet.DownstreamResource{ill}},
	}}
	released := func(i int) bool { return i < 4 } // the last one is only paused
	read, stale, err := c.fetchCopies(t.Context(), o, []int{0, 1, 2, 3, 4}, released)
	if stale || !errors.Is(err, damaged) || !slices.Equal(read, []int{0, 3, 4}) {
		t.Errorf("written are the targets %v, %v, %v", read, stale, err)
	}
	for i, want := range []bool{false, true, true, false, false} {
		if (o.targets[i].failure != nil) != want {
			t.Errorf("target %d has the error %v", i, o.targets[i].failure)
		}
	}
}
