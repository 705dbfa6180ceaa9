// Package ownbundle writes the Bundles of GitRepos and HelmOps.
//
// Its invariant: it changes a Bundle only if the owner is its controller. A Bundle without a
// controller, but with the owner's label, comes from Rancher Fleet, and gets the owner.
package ownbundle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// fieldOwner is the field manager of the Bundles.
const fieldOwner = client.FieldOwner("muster-gitops")

// maxObject is the largest Bundle, as JSON. etcd stores 1.5 MiB, with the fields' managers.
const maxObject = 1450 << 10

// reserved is the prefix of labels with a meaning for the hub. One of them marks an agent's Bundle.
const reserved = "muster/"

// Owner is the controlling object of Bundles.
type Owner struct {
	client.Object
	// Kind is its kind, and Label the label of its Bundles with its name.
	Kind, Label string
	// Reason is the reason for a Bundle refused by the API server. Rename and Shrink are remedies.
	Reason, Rename, Shrink string
}

// Refusal is the reason why a Bundle cannot be written.
type Refusal struct{ Reason, Message string }

func refused(reason, format string, args ...any) *Refusal {
	return &Refusal{reason, fmt.Sprintf(format, args...)}
}

// Is reports whether the owner is the controller of a Bundle.
func (o Owner) Is(bundle *fleet.Bundle) bool {
	controller := metav1.GetControllerOf(bundle)
	return controller != nil && controller.UID == o.GetUID()
}

func (o Owner) mayWrite(present *fleet.Bundle) bool {
	return o.Is(present) || metav1.GetControllerOf(present) == nil && present.Labels[o.Label] == o.GetName()
}

// Writer writes Bundles.
type Writer struct {
	client.Client
	// Live reads the Bundles as they are.
	Live client.Reader
}

// Write creates or changes a Bundle. Another owner's Bundle of the same name is a refusal, and
// stays unchanged. An equal Bundle is not written.
func (w Writer) Write(ctx context.Context, owner Owner, wanted *fleet.Bundle) (*Refusal, error) {
	if text, err := json.Marshal(wanted); err == nil && len(text) > maxObject {
		return refused(owner.Reason, "Bundle %s has %d KiB, and the API server stores %d KiB: %s", wanted.Name, len(text)>>10, maxObject>>10,
			owner.Shrink), nil
	}
	for key := range wanted.Labels {
		if strings.HasPrefix(key, reserved) {
			return refused(owner.Reason, "Bundle %s has the label %s, and such labels are Muster's own: remove it", wanted.Name, key), nil
		}
	}
	digest, err := digestOf(&wanted.Spec)
	if err != nil {
		return nil, err
	}
	note, err := json.Marshal(written{Spec: digest, Labels: slices.Sorted(maps.Keys(wanted.Labels))})
	if err != nil {
		return nil, err
	}
	reference := *metav1.NewControllerRef(owner, fleet.GroupVersion.WithKind(owner.Kind))
	reference.BlockOwnerDeletion = nil // it takes a right on the finalizers of the owner, and nothing waits for it
	wanted.Annotations, wanted.OwnerReferences = map[string]string{annotationWritten: string(note)}, []metav1.OwnerReference{reference}
	present := &fleet.Bundle{}
	err = w.Live.Get(ctx, client.ObjectKeyFromObject(wanted), present)
	switch {
	case apierrors.IsNotFound(err) && !kube.NotServed(err):
		return owner.refusal(wanted, w.Create(ctx, wanted, fieldOwner))
	case err != nil:
		return nil, fmt.Errorf("reading Bundle %s: %w", wanted.Name, err)
	case !owner.mayWrite(present):
		return owner.taken(present), nil
	case !present.DeletionTimestamp.IsZero():
		return refused(reasons.BundleNameTaken, "Bundle %s is being deleted: it is created again when it is gone", wanted.Name), nil
	}
	after := present.DeepCopy()
	for _, key := range writtenTo(present).Labels {
		delete(after.Labels, key)
	}
	after.Labels = merged(after.Labels, wanted.Labels)
	after.Annotations = merged(after.Annotations, wanted.Annotations)
	after.OwnerReferences, after.Spec = wanted.OwnerReferences, wanted.Spec
	if before, err := digestOf(&present.Spec); err == nil && before == digest && owner.Is(present) &&
		maps.Equal(present.Labels, after.Labels) && maps.Equal(present.Annotations, after.Annotations) {
		return nil, nil
	}
	return owner.refusal(wanted, w.Update(ctx, after, fieldOwner))
}

// taken refuses the name of another owner's Bundle. Its controller would create a deleted one
// again.
func (o Owner) taken(present *fleet.Bundle) *Refusal {
	of, remedy := "", "delete that Bundle, or give "+o.Rename
	switch other := metav1.GetControllerOf(present); {
	case other == nil:
	case other.Kind == o.Kind && other.Name == o.GetName():
		of, remedy = ", but of an earlier one", "it is created again when it is gone"
	default:
		of, remedy = fmt.Sprintf(", but of %s %s", other.Kind, other.Name), "give "+o.Rename
	}
	return refused(reasons.BundleNameTaken, "Bundle %s exists and is not of this %s%s: %s", present.Name, o.Kind, of, remedy)
}

// refusal turns the refusal of a Bundle by the API server into one of its owner.
func (o Owner) refusal(bundle *fleet.Bundle, err error) (*Refusal, error) {
	var status apierrors.APIStatus
	if apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsForbidden(err) ||
		errors.As(err, &status) && status.Status().Code == 400 {
		return refused(o.Reason, "Bundle %s: %s", bundle.Name, kube.Clip(err.Error(), 1024)), nil
	}
	return nil, err
}

func merged(base, more map[string]string) map[string]string {
	all := maps.Clone(base)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}
