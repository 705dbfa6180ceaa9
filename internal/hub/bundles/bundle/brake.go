package bundle

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// maxLosers limits the Clusters in a message about the removal of a Bundle.
const maxLosers = 10

// maxQuotedShare limits the quoted part of an invalid share.
const maxQuotedShare = 20

// brake returns the reason why a large removal needs a user's confirmation; "" if it needs none.
// The Bundle itself has not changed. One change of a ClusterGroup, of labels or of a mapping would
// remove it from a part of the fleet.
func (o observed) brake() string {
	before := kube.FindCondition(o.bundle.Status.Conditions, fleet.ConditionProcessed)
	held := before != nil && before.Reason == reasons.RemovalHeld // an edit of another field confirms nothing
	changed := o.bundle.Status.ObservedGeneration != o.bundle.Generation
	lose, have := len(o.leftover), len(o.leftover)+len(o.targets)
	if changed && !held || !removal.Many(lose, have, o.share) {
		return ""
	}
	token := o.removalToken()
	if value := o.bundle.Annotations[fleet.AnnotationConfirmRemoval]; value == token || o.confirmed.holds(value, o.leftover) {
		return ""
	}
	return fmt.Sprintf("%d of the %d Clusters with the Bundle would lose it, although the Bundle has not changed: %s; a ClusterGroup, "+
		"labels or a BundleNamespaceMapping have changed%s; deployed objects stay as they are; to confirm the removal, muster confirm bundles "+
		"%s/%s, or kubectl annotate --overwrite -n %s "+
		"bundle.fleet.cattle.io %s %s=%s", lose, have, o.losers(), o.shareIgnored, o.bundle.Namespace,
		o.bundle.Name, o.bundle.Namespace, o.bundle.Name, fleet.AnnotationConfirmRemoval, token)
}

// removalToken returns the value to confirm the removal of exactly these deployments.
func (o observed) removalToken() string {
	var names []string
	for _, one := range o.leftover {
		names = append(names, one.deployment.Namespace+" "+string(one.deployment.UID))
	}
	slices.Sort(names)
	return naming.Digest(strings.Join(names, "\n"))[:8]
}

// confirmed is a removal confirmed by a user but not finished, because a deletion failed. After a
// restart the hub has forgotten it, and needs a new confirmation.
type confirmed struct {
	// value of the confirming annotation.
	value string
	// uids holds the UIDs of the deployments.
	uids map[types.UID]bool
}

// holds reports whether a value confirmed the removal of all these deployments, and possibly of
// deleted ones.
func (c confirmed) holds(value string, all []leftover) bool {
	return value != "" && value == c.value && !slices.ContainsFunc(all, func(one leftover) bool { return !c.uids[one.deployment.UID] })
}

// confirms returns the removal confirmed by the Bundle's annotation now. It is the removal named by
// its value, or the rest of an earlier one. A deployment wanted again in between is no longer
// confirmed.
func (o observed) confirms() confirmed {
	value := o.bundle.Annotations[fleet.AnnotationConfirmRemoval]
	_, takeover := o.takes()
	if len(o.leftover) == 0 || value != o.removalToken() && value != takeover && !o.confirmed.holds(value, o.leftover) {
		return confirmed{}
	}
	is := confirmed{value: value, uids: map[types.UID]bool{}}
	for _, one := range o.leftover {
		is.uids[one.deployment.UID] = true
	}
	return is
}

// brakeSetting is the share of a Bundle's Clusters that may lose it without a confirmation.
type brakeSetting struct {
	share int
	// shareIgnored is the reason why the workspace's own share is ignored; empty if it is used.
	shareIgnored string
}

// brakeSetting returns the setting of a workspace, or else the hub's. Like the consent to mappings
// it is an annotation of the Namespace. Tenants usually cannot write it.
func (c *Controller) brakeSetting(ctx context.Context, workspace string) brakeSetting {
	setting := brakeSetting{share: c.Config.Current().RemovalShare}
	namespace, err := c.Workspaces.Named(ctx, workspace)
	if err != nil || namespace == nil {
		return setting // the cache has every workspace
	}
	return setting.in(namespace)
}

// in returns the setting with the changes of a Namespace.
func (s brakeSetting) in(namespace *metav1.PartialObjectMetadata) brakeSetting {
	text, given := namespace.Annotations[fleet.AnnotationRemovalBrake]
	if !given {
		return s
	}
	share, ok := removal.ParseShare(text)
	if !ok {
		s.shareIgnored = fmt.Sprintf("; annotation %s of Namespace %s is %q, which is no percentage from 0 to 100, and is ignored",
			fleet.AnnotationRemovalBrake, namespace.Name, kube.Clip(text, maxQuotedShare))
		return s
	}
	return brakeSetting{share: share}
}

// losers names the first Clusters in a removal of the Bundle.
func (o observed) losers() string {
	var names []string
	for _, one := range o.leftover {
		labels := one.deployment.Labels
		names = append(names, nameFrom(o.bundle.Namespace, labels[fleet.LabelClusterNamespace], labels[fleet.LabelCluster]))
	}
	slices.Sort(names)
	return kube.JoinNames(names[:min(maxLosers, len(names))], len(names))
}

// nameFrom returns the name of a Cluster for readers of a workspace.
func nameFrom(workspace, namespace, name string) string {
	if namespace == workspace {
		return name
	}
	return namespace + "/" + name
}
