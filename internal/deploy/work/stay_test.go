package work

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const claim = `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: NAME-data, namespace: fleet-member-NAME},
	spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`

// unmarked reads an object that has to be there without anything of ours.
func (r *rig) unmarked(o client.Object) {
	r.t.Helper()
	r.refresh(o)
	if o.GetDeletionTimestamp() != nil || len(o.GetOwnerReferences()) > 0 || o.GetLabels()[labelWork] != "" ||
		o.GetAnnotations()[annotationHash] != "" || o.GetAnnotations()[annotationTakenOver] != "" {
		r.t.Errorf("%T %s is left with %v, %v, %v", o, o.GetName(), o.GetOwnerReferences(), o.GetLabels(), o.GetAnnotations())
	}
}

func TestWhatHeldDataBeforeAWorkStaysWhenTheWorkGoes(t *testing.T) {
	r := newRig(t)
	ctx, namespace := context.Background(), "{apiVersion: v1, kind: Namespace, metadata: {name: NAME-prod}}"
	made := "{apiVersion: v1, kind: Namespace, metadata: {name: NAME-made}}"
	for _, document := range []string{namespace, claim, configMap("there", "a: b")} {
		r.check(r.Create(ctx, r.object(document)))
	}
	all := []string{namespace, claim, made, configMap("there", "a: c"), configMap("one", "a: b")}
	work := r.place("work", nil, all...)
	r.applied(work)
	r.place("work", nil, append(all, configMap("two", "a: b"))...) // it is applied again
	r.applied(work)
	r.halt()
	r.start()
	r.edit("there", func(c *corev1.ConfigMap) { c.Data["a"] = "edited" })
	r.untilData("there", "a", "c")
	r.place("work", nil, append(all[1:], configMap("two", "a: b"))...) // the namespace leaves it
	r.applied(work)
	prod := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.name + "-prod"}}
	r.unmarked(prod)
	r.check(r.Delete(ctx, work))
	r.untilGone("the Work", work)
	r.unmarked(prod)
	r.unmarked(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name + "-data"}})
	for name, o := range map[string]client.Object{"there": &corev1.ConfigMap{}, "one": &corev1.ConfigMap{}} {
		if err := r.Get(ctx, client.ObjectKey{Namespace: r.namespace, Name: name}, o); !apierrors.IsNotFound(err) {
			t.Errorf("ConfigMap %s: %v", name, err)
		}
	}
	var own corev1.Namespace
	if err := r.Get(ctx, client.ObjectKey{Name: r.name + "-made"}, &own); err == nil && own.DeletionTimestamp == nil {
		t.Error("the Namespace that was made for the Work is still there")
	}
}

func TestWhatSomebodyKeepsStaysWhenTheWorkGoes(t *testing.T) {
	r := newRig(t)
	work := r.place("work", nil, claim, configMap("one", "a: b"), configMap("two", "a: b"))
	r.applied(work)
	r.edit("one", func(c *corev1.ConfigMap) { c.Annotations["helm.sh/resource-policy"] = "keep" })
	held := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: r.name + "-data"}}
	r.check(r.Patch(context.Background(), held,
		client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"annotations":{"helm.sh/resource-policy":"keep"}}}`))))
	r.place("work", nil, claim, configMap("two", "a: b"))
	r.applied(work)
	r.unmarked(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "one"}})
	r.check(r.Delete(context.Background(), work))
	r.untilGone("the Work", work)
	r.unmarked(held)
	if _, err := r.configMap("two"); !apierrors.IsNotFound(err) {
		t.Errorf("ConfigMap two: %v", err)
	}
}
