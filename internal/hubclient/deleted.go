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

// ErrExists says that a BundleDeployment is there.
var ErrExists = errors.New("the BundleDeployment is there")

// errUnproven says that a BundleDeployment is missing, and nothing tells a deletion from a
// hub that was restored.
var errUnproven = errors.New("the hub has no record that it deleted the BundleDeployment, and no longer keeps the versions of that time, " +
	"so that it may have been restored from a backup: create the Bundle again; to remove the release, delete the Bundle after that")

// Delivered is the BundleDeployment of which a release was made.
type Delivered struct {
	Name string
	// UID and Version are those that it had last; the UID is empty if an earlier version of
	// the agent noted none.
	UID, Version string
}

// ConfirmDeleted makes sure that the hub has deleted a BundleDeployment and nothing else: the hub
// serves the kind and takes new ones, knows no object of the name, by a read that no cache answers,
// and the member namespace is the one of the report's UID and stays. Every other answer, that the
// kind is not served included, is an error: then nothing is known about the BundleDeployment. The
// proof is the record of the hub on the report; without one, its history: a hub that was restored
// is one that is behind the version which the BundleDeployment once had, or that did not have it at
// that version. A history that expired proves nothing.
func (m *Member) ConfirmDeleted(ctx context.Context, report types.UID, of Delivered) (restored bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := m.Serves(ctx, BundleDeployments); err != nil {
		return false, err
	}
	deployments, err := m.Deployments()
	if err != nil {
		return false, err
	}
	found, err := deployments.Get(ctx, of.Name, metav1.GetOptions{})
	switch {
	case err == nil && found.DeletionTimestamp == nil:
		return false, ErrExists
	case err != nil && !isMissing(err, of.Name):
		return false, fmt.Errorf("reading BundleDeployment %s/%s: %w", m.Namespace, of.Name, err)
	}
	isDeleted := err == nil && string(found.UID) == of.UID
	member, err := m.stays(ctx, report)
	if err != nil {
		return false, err
	}
	if err := m.namespaceStays(ctx); err != nil {
		return false, err
	}
	recorded := strings.Fields(member.Annotations[clusterv1beta1.AnnotationRemoved])
	if of.UID != "" && (isDeleted || slices.Contains(recorded, of.UID)) {
		return false, nil
	}
	return m.restored(ctx, deployments, of.Name, of.Version)
}

// restored says whether the hub has another history than the one in which a BundleDeployment had a
// version. A hub that was restored passes the version sooner or later; then it tells as long as its
// etcd keeps that version, which is five to ten minutes.
func (m *Member) restored(ctx context.Context, deployments *Deployments, name, had string) (bool, error) {
	// Without a version to start from, the API server asks its storage.
	now, err := deployments.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return false, fmt.Errorf("listing the BundleDeployments of %s: %w", m.Namespace, err)
	}
	switch order, err := resourceversion.CompareResourceVersion(now.ResourceVersion, had); {
	case err != nil:
		return false, nil //nolint:nilerr // what cannot be compared says nothing
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

// isMissing says whether an error is the API server's answer that there is no object of that name.
// An API server that does not serve the kind answers with the same code.
func isMissing(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name && !apierrors.IsUnexpectedServerError(err)
}
