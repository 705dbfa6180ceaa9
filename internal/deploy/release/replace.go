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

// goneWithin is how long an object that is replaced may take to go.
const goneWithin = 30 * time.Second

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
func whyKept(s Summary, found, manifest *unstructured.Unstructured) string {
	switch kind := found.GroupVersionKind().GroupKind(); {
	case applied.HoldsData(kind):
		return "what a " + kind.Kind + " holds would go with it"
	case !Belongs(s, found):
		return "it is not of release " + s.String() + " any more"
	case applied.Keeps(found) || applied.Keeps(manifest):
		return "it has the annotation helm.sh/resource-policy: keep"
	case deletesClaims(found):
		return "its claims would go with it (persistentVolumeClaimRetentionPolicy.whenDeleted: Delete)"
	case found.GetDeletionTimestamp() != nil:
		return "it is being deleted, and waits for finalizers " + applied.Join(applied.Finalizers(found))
	}
	return ""
}

// Replacement is an object that has to go before it can be as its manifest says.
type Replacement struct {
	found *unstructured.Unstructured
	// fields are those that cannot be changed.
	fields string
}

// CheckReplace returns the replacement of an object of a release that an apply was refused for, or an
// error if the object has to stay: it has to be the release's, hold no data, and be sure to come back.
func CheckReplace(ctx context.Context, objects dynamic.ResourceInterface, s Summary, manifest *unstructured.Unstructured, refused error) (*Replacement, error) {
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
	// All checks of a create come before that for an object of the same name.
	_, err = objects.Create(ctx, manifest, metav1.CreateOptions{FieldManager: FieldManager, DryRun: []string{metav1.DryRunAll}})
	if !apierrors.IsAlreadyExists(err) {
		return nil, stays(fmt.Sprintf("to create it would be refused: %v", err))
	}
	return &Replacement{found, fields}, nil
}

// MakeWay deletes the object, and returns when it is gone.
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
