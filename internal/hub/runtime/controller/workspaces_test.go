package controller

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// readCache is a cache that reads from a client.
type readCache struct {
	cache.Cache
	client.Reader
}

func (c readCache) Get(ctx context.Context, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
	return c.Reader.Get(ctx, key, o, options...)
}

func (c readCache) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	return c.Reader.List(ctx, list, options...)
}

func TestAWorkspaceIsReadFromTheCacheThatHasIt(t *testing.T) {
	namespace := func(name string) client.Object { return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	with := func(name string) client.Reader { return fake.NewClientBuilder().WithObjects(namespace(name)).Build() }
	foreign, own := with("clusters"), with("labelled")
	broken := fake.NewClientBuilder().WithInterceptorFuncs(interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			return errors.New("the cache of " + key.Name + " is broken")
		},
	}).Build()
	for name, c := range map[string]struct {
		foreign, own client.Reader
		found, fails bool
	}{
		"clusters": {foreign, own, true, false},
		"labelled": {foreign, own, true, false},
		"missing":  {foreign, own, false, false},
		"broken":   {broken, own, false, true},
	} {
		w := &Workspaces{Cache: readCache{Reader: c.foreign}, own: c.own}
		workspace, err := w.Named(t.Context(), name)
		if (workspace != nil) != c.found || (err != nil) != c.fails || workspace != nil && workspace.Name != name {
			t.Errorf("%s: read %v, %v", name, workspace, err)
		}
	}
}
