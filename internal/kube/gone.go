package kube

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// IsGone checks with the API server whether an object in a cache no longer exists. After an API
// server was restored from a snapshot, the caches of its clients notice one after the other.
func IsGone(ctx context.Context, live client.Reader, kind schema.GroupVersionKind, shown client.Object) (bool, error) {
	now := Metadata(kind)
	err := live.Get(ctx, client.ObjectKeyFromObject(shown), now)
	if apierrors.IsNotFound(err) && !NotServed(err) {
		return true, nil
	} else if err != nil {
		return false, fmt.Errorf("reading %s: %w", Name(kind.Kind, shown.GetNamespace(), shown.GetName()), err)
	}
	return now.UID != shown.GetUID(), nil
}
