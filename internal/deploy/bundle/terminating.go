package bundle

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/muster-fleet/muster/internal/kubeclient"
)

// awaitNamespace enqueues a deployment once a namespace in deletion is gone. The watch of this one
// namespace ends at the next attempt, and the attempt begins another one.
func (d *Deployer) awaitNamespace(ctx context.Context, name, namespace string, until time.Time) {
	ctx, cancel := context.WithTimeout(ctx, until.Sub(d.Clock.Now()))
	go func() {
		defer cancel()
		namespaces := d.Cluster.Kube.CoreV1().Namespaces()
		changes, err := namespaces.Watch(ctx, metav1.ListOptions{FieldSelector: kubeclient.Name(namespace)})
		if err != nil {
			return // the next attempt finds it gone
		}
		defer changes.Stop()
		// A watch without a version begins with the object, but not with its absence.
		if _, err := namespaces.Get(ctx, namespace, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			d.wake(name, 0)
			return
		}
		for event := range changes.ResultChan() {
			if event.Type == watch.Deleted {
				d.wake(name, 0)
				return
			}
		}
	}()
}
