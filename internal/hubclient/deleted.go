package hubclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// ErrExists means that a BundleDeployment exists.
var ErrExists = errors.New("the BundleDeployment is there")

// errUnproven means that a BundleDeployment is missing without a proof of its deletion: the hub may
// have been restored.
var errUnproven = errors.New("the hub has no trace of the deletion of the BundleDeployment, and no longer keeps the versions of " +
	"that time, so it may have been restored from a backup: create the Bundle again; to remove the release, delete the Bundle after that")

// Delivered is the BundleDeployment of a release.
type Delivered struct {
	Name string
	// UID and Version are its last UID and version. UID is empty if an earlier version of the agent
	// noted none.
	UID, Version string
}

// ConfirmDeleted verifies the deletion of a BundleDeployment, and of nothing else, by the hub. The
// hub must serve the kind, accept new objects of it, and have no object of the name, by an uncached
// read. The member namespace must belong to the UID of the report, and must not be in deletion.
//
// Every other answer is an error, for example for an unserved kind: the state of the
// BundleDeployment is then unknown.
//
// The proof of the deletion is the hub's annotation on the report. Without it, the history of the
// hub decides. A restored hub is behind the version of the BundleDeployment, or does not have the
// BundleDeployment at that version. An expired history proves nothing.
func (m *Member) ConfirmDeleted(ctx context.Context, report types.UID, delivered Delivered) (restored bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := m.Serves(ctx, BundleDeployments); err != nil {
		return false, err
	}
	deployments, err := m.Deployments()
	if err != nil {
		return false, err
	}
	found, err := deployments.Get(ctx, delivered.Name, metav1.GetOptions{})
	switch {
	case err == nil && found.DeletionTimestamp == nil:
		return false, ErrExists
	case err != nil && !isMissing(err, delivered.Name):
		return false, fmt.Errorf("reading BundleDeployment %s/%s: %w", m.Namespace, delivered.Name, err)
	}
	isDeleted := err == nil && string(found.UID) == delivered.UID
	member, err := m.stays(ctx, report)
	if err != nil {
		return false, err
	}
	if err := m.namespaceStays(ctx); err != nil {
		return false, err
	}
	recorded := strings.Fields(member.Annotations[clusterv1beta1.AnnotationRemoved])
	if delivered.UID != "" && (isDeleted || slices.Contains(recorded, delivered.UID)) {
		return false, nil
	}
	return m.restored(ctx, deployments, delivered.Name, delivered.Version)
}

// restored reports whether the hub's history lacks a BundleDeployment at the version it had. A
// restored hub passes the version sooner or later. Its etcd then keeps the version for five to ten
// minutes as evidence.
func (m *Member) restored(ctx context.Context, deployments *Deployments, name, had string) (bool, error) {
	// Without a version to start from, the API server reads its storage.
	now, err := deployments.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("listing the BundleDeployments of %s: %w", m.Namespace, err)
	}
	switch order, err := resourceversion.CompareResourceVersion(now.ResourceVersion, had); {
	case err != nil:
		return false, nil //nolint:nilerr // versions that cannot be compared prove nothing
	case order < 0:
		return true, nil
	}
	then, err := deployments.List(ctx, metav1.ListOptions{
		ResourceVersion: had, ResourceVersionMatch: metav1.ResourceVersionMatchExact, FieldSelector: "metadata.name=" + name})
	switch {
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err):
		return false, errUnproven
	case err != nil:
		return false, fmt.Errorf("listing BundleDeployment %s/%s at version %s: %w", m.Namespace, name, had, err)
	}
	return len(then.Items) == 0, nil
}

// isMissing reports whether an error means that no object of the name exists. An API server without
// the kind answers with the same code.
func isMissing(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name && !apierrors.IsUnexpectedServerError(err)
}
