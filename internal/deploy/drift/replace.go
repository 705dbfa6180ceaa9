package drift

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// goneWithin is how long an object that is replaced may take to go.
const goneWithin = 30 * time.Second

// holdData are the kinds that are never replaced: deleting such an object deletes what it holds.
var holdData = []schema.GroupKind{
	{Kind: "Namespace"}, {Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// unchangeable is how the API server says that a field keeps its value as long as the object lives.
var unchangeable = regexp.MustCompile(`immutable|may not change|may not be changed|cannot change|updates to .+ forbidden|may not change fields other than`)

// immutable returns the fields because of which an apply was refused, if each of them keeps its
// value as long as the object lives. Any other refusal, such as one of a policy, a webhook or a
// quota, says nothing of the object, and would keep it from coming back.
func immutable(err error) []string {
	var refused apierrors.APIStatus
	if !apierrors.IsInvalid(err) || !errors.As(err, &refused) || refused.Status().Details == nil {
		return nil
	}
	var fields []string
	for _, cause := range refused.Status().Details.Causes {
		if cause.Field == "" || !unchangeable.MatchString(cause.Message) { // a policy names no field
			return nil
		}
		fields = append(fields, cause.Field)
	}
	return fields
}

// deletesClaims says whether an object is a StatefulSet whose PersistentVolumeClaims go with it.
func deletesClaims(object *unstructured.Unstructured) bool {
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted") // what is no text is no policy
	return object.GetKind() == "StatefulSet" && policy == "Delete"
}

// whyKept says why an object may not be deleted to be created again; "" if it may.
func whyKept(s release.Summary, found, manifest *unstructured.Unstructured) string {
	switch kind := found.GroupVersionKind().GroupKind(); {
	case slices.Contains(holdData, kind):
		return "what a " + kind.Kind + " holds would go with it"
	case !release.Belongs(s, found):
		return "it is not of release " + s.String() + " any more"
	case release.HasKeepPolicy(found) || release.HasKeepPolicy(manifest):
		return "it has the annotation helm.sh/resource-policy: keep"
	case deletesClaims(found):
		return "its claims would go with it (persistentVolumeClaimRetentionPolicy.whenDeleted: Delete)"
	case found.GetDeletionTimestamp() != nil:
		return "it is being deleted, and waits for finalizers " + applied.Join(applied.Finalizers(found))
	}
	return ""
}

// replace deletes an object that cannot be set back, and creates it as it should be. The object has
// to be the release's, hold no data, and be sure to come back.
func (d *Detector) replace(ctx context.Context, s *Set, key Key, objects dynamic.ResourceInterface, manifest *unstructured.Unstructured, refused error) error {
	fields := strings.Join(immutable(refused), ", ")
	if fields == "" {
		return refused
	}
	stays := func(why string) error {
		return fmt.Errorf("%s cannot be changed, and the object is not replaced, because %s", fields, why)
	}
	found, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return stays("it cannot be read: " + err.Error())
	}
	if why := whyKept(s.release, found, manifest); why != "" {
		return stays(why)
	}
	// All checks of a create come before that for an object of the same name.
	_, err = objects.Create(ctx, manifest, metav1.CreateOptions{FieldManager: release.FieldManager, DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsAlreadyExists(err) {
		return stays(fmt.Sprintf("to create it would be refused: %v", err))
	}
	uid, version, propagation := found.GetUID(), found.GetResourceVersion(), metav1.DeletePropagationBackground
	err = objects.Delete(ctx, key.Name, metav1.DeleteOptions{
		PropagationPolicy: &propagation, Preconditions: &metav1.Preconditions{UID: &uid, ResourceVersion: &version},
	})
	if err != nil {
		return fmt.Errorf("replacing it because of %s: %w", fields, err)
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second/4, goneWithin, true, func(ctx context.Context) (bool, error) {
		left, err := objects.Get(ctx, key.Name, metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && left.GetUID() != uid, nil
	})
	if err != nil {
		return fmt.Errorf("it is being replaced because of %s, and is not gone yet", fields)
	}
	_, err = release.Apply(ctx, objects, manifest)
	return err
}
