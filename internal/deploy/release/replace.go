package release

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"

	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/removal"
)

// goneWithin bounds the time until a replaced object is gone.
const goneWithin = 30 * time.Second

// unchangeable matches messages of the API server about immutable fields.
var unchangeable = regexp.MustCompile(
	`immutable|may not change|may not be changed|cannot change|updates to .+ forbidden|may not change fields other than`,
)

// immutable returns the refused fields of an apply, if each keeps its value for the life of the
// object. Any other refusal, such as by a policy, a webhook or a quota, is not about the object. It
// could keep a replaced object from coming back.
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

// ExplainImmutable adds the remedy to an error about immutable fields.
func ExplainImmutable(err error) error {
	if len(immutable(err)) == 0 {
		return err
	}
	return fmt.Errorf("%w: undo the change, or give the object another name, or delete it on the member, and the agent creates it again", err)
}

// deletesClaims reports whether an object is a StatefulSet with deletion of its
// PersistentVolumeClaims.
func deletesClaims(object *unstructured.Unstructured) bool {
	// a value other than text is no policy
	policy, _, _ := unstructured.NestedString(object.Object, "spec", "persistentVolumeClaimRetentionPolicy", "whenDeleted")
	return object.GetKind() == "StatefulSet" && policy == "Delete"
}

// whyKept returns the reason not to delete an object and create it again; "" if it may be deleted.
func whyKept(s Summary, found, manifest *unstructured.Unstructured) string {
	switch kind := found.GroupVersionKind().GroupKind(); {
	case applied.HoldsData(kind):
		return "the contents of the " + kind.Kind + " would be deleted with it"
	case !Belongs(s, found):
		return "it is not of release " + s.String() + " any more"
	case applied.Keeps(found) || applied.Keeps(manifest):
		return "it has the annotation helm.sh/resource-policy: keep"
	case deletesClaims(found):
		return "its PersistentVolumeClaims would be deleted with it (persistentVolumeClaimRetentionPolicy.whenDeleted: Delete)"
	case found.GetDeletionTimestamp() != nil:
		return "it is being deleted, and waits for finalizers " + applied.Join(applied.Finalizers(found))
	}
	return ""
}

// Replacement is an object that must be deleted before its manifest can be applied.
type Replacement struct {
	found *unstructured.Unstructured
	// fields are the changed immutable fields.
	fields string
}

// CheckReplace returns the replacement of an object of a release after a refused apply, or an error
// if the object must stay. It must belong to the release, hold no data, and be sure to come back.
func CheckReplace(ctx context.Context, objects dynamic.ResourceInterface, s Summary, manifest *unstructured.Unstructured,
	refused error) (*Replacement, error) {
	fields := strings.Join(immutable(refused), ", ")
	if fields == "" {
		return nil, refused
	}
	stays := func(why string) error {
		return fmt.Errorf("%s cannot be changed, and the object is not replaced, because %s", fields, why)
	}
	found, err := objects.Get(ctx, manifest.GetName(), metav1.GetOptions{})
	if err != nil {
		return nil, stays("it cannot be read: " + err.Error())
	}
	if why := whyKept(s, found, manifest); why != "" {
		return nil, stays(why)
	}
	// The API server checks a create completely before it looks for an object of the same name.
	_, err = objects.Create(ctx, manifest, metav1.CreateOptions{FieldManager: FieldManager, DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsAlreadyExists(err) {
		return nil, stays(fmt.Sprintf("to create it would be refused: %v", err))
	}
	return &Replacement{found, fields}, nil
}

// MakeWay deletes the object, and waits until it is gone.
func (r *Replacement) MakeWay(ctx context.Context, objects dynamic.ResourceInterface) error {
	uid := r.found.GetUID()
	err := removal.Delete(ctx, removal.Of(objects), r.found, removal.Replaced)
	if err != nil {
		return fmt.Errorf("replacing it because of %s: %w", r.fields, err)
	}
	err = wait.PollUntilContextTimeout(ctx, time.Second/4, goneWithin, true, func(ctx context.Context) (bool, error) {
		left, err := objects.Get(ctx, r.found.GetName(), metav1.GetOptions{})
		return apierrors.IsNotFound(err) || err == nil && left.GetUID() != uid, nil
	})
	if err != nil {
		return fmt.Errorf("it is being replaced because of %s, and is not gone yet", r.fields)
	}
	return nil
}
