package hubclient

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ErrExists says that a BundleDeployment is there.
var ErrExists = errors.New("the BundleDeployment is there")

// ConfirmDeleted makes sure that the hub has deleted a BundleDeployment and nothing else: the hub serves the kind and takes new ones, knows no
// object of the name, by a read that no cache answers, and the member namespace is the one of the report's UID and stays. Every other answer,
// that the kind is not served included, is an error: then nothing is known about the BundleDeployment. The version is the hub's at that time.
func (m *Member) ConfirmDeleted(ctx context.Context, report types.UID, name string) (version string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if err := m.Serves(ctx, BundleDeployments); err != nil {
		return "", err
	}
	deployments, err := m.Deployments()
	if err != nil {
		return "", err
	}
	found, err := deployments.Get(ctx, name, metav1.GetOptions{})
	switch {
	case err == nil && found.DeletionTimestamp == nil:
		return "", ErrExists
	case err != nil && !isMissing(err, name):
		return "", fmt.Errorf("reading BundleDeployment %s/%s: %w", m.Namespace, name, err)
	}
	if err := m.stays(ctx, report); err != nil {
		return "", err
	}
	if err := m.namespaceStays(ctx); err != nil {
		return "", err
	}
	// Without a version to start from, the API server asks its storage.
	list, err := deployments.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return "", fmt.Errorf("listing the BundleDeployments of %s: %w", m.Namespace, err)
	}
	return list.ResourceVersion, nil
}

// isMissing says whether an error is the API server's answer that there is no object of that name. An API server that does not serve the kind answers
// with the same code.
func isMissing(err error, name string) bool {
	var status apierrors.APIStatus
	if !apierrors.IsNotFound(err) || !errors.As(err, &status) {
		return false
	}
	details := status.Status().Details
	return details != nil && details.Name == name && !apierrors.IsUnexpectedServerError(err)
}
