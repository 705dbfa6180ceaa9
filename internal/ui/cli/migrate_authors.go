package cli

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/author"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// maxGroups bounds the bytes of groups in clear text in the admission policy.
const maxGroups = 16384

// authored lists the kinds with the rights of their authors.
var authored = []string{
	"ClusterResourcePlacement", "ResourcePlacement", "ClusterResourceOverride", "ResourceOverride", "ClusterResourceEnvelope",
	"ResourceEnvelope",
}

// authorsOf makes the user the author of all placements, overrides and envelopes without one.
// KubeFleet stores no authors. The admission policies accept only the user's own name.
func (m *migrator) authorsOf(ctx context.Context, hub *checked) error {
	if !m.authors {
		return nil
	}
	var without []client.Object
	for _, kind := range authored {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(placement.GroupVersion.WithKind(kind + "List"))
		err := view.Each(ctx, hub, list, func(o client.Object) {
			if _, known := author.Of(o.GetAnnotations()); !known && o.GetDeletionTimestamp() == nil {
				without = append(without, o)
			}
		})
		if err != nil && !kube.NotServed(err) {
			return fmt.Errorf("listing the %ss without an author: %w", kind, err)
		}
	}
	if len(without) == 0 {
		return nil
	}
	user, err := hub.user(ctx)
	if err != nil {
		return err
	}
	const what = "%d placements, overrides and envelopes have no author, as KubeFleet stores none"
	if m.dryRun {
		m.progress.line(what+". You, %s, would become their author: they go on with your rights until a user changes them. --authors=false "+
			"leaves them as they are.", len(without), user.Username)
		return nil
	}
	annotations := map[string]any{author.AnnotationName: user.Username}
	if groups := linesOf(user.Groups); len(groups) <= maxGroups {
		annotations[author.AnnotationGroups] = groups
	}
	for i, o := range without {
		switch err := kube.Annotate(ctx, hub, o, annotations); {
		case apierrors.IsForbidden(err):
			m.progress.step(what+", and you may not annotate them, such as %s: what they place stays as it is until a user becomes their author "+
				"(%s)", len(without)-i, hub.title(o), err)
			return m.progress.err
		case client.IgnoreNotFound(err) != nil:
			return fmt.Errorf("making %s the author of %s: %w"+canBeRepeated, user.Username, hub.title(o), err)
		}
	}
	m.progress.step("You, %s, are now the author of %d placements, overrides and envelopes, as KubeFleet stores none: they go on with your "+
		"rights until a user changes them", user.Username, len(without))
	return m.progress.err
}

// linesOf formats groups like the admission policy, one per line.
func linesOf(groups []string) string {
	var lines []string
	for _, group := range groups {
		if !strings.Contains(group, "\n") {
			lines = append(lines, group)
		}
	}
	return strings.Join(lines, "\n")
}

// user returns the user name on the cluster.
func (c *checked) user(ctx context.Context) (authenticationv1.UserInfo, error) {
	clients, err := kubernetes.NewForConfig(c.config)
	if err != nil {
		return authenticationv1.UserInfo{}, err
	}
	review, err := clients.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return authenticationv1.UserInfo{}, fmt.Errorf("reading your user name on %s: %w", c.role, err)
	}
	return review.Status.UserInfo, nil
}
