package membercluster

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

// exportKind is the kind of the services that a member exports. KubeFleet's networking agents write
// them into the member namespace; a hub without these agents does not serve the kind.
var exportKind = schema.GroupKind{Group: "networking.fleet.azure.com", Kind: "InternalServiceExport"}

// exportCheck is the check of a deleted MemberCluster before it leaves.
type exportCheck struct {
	// reason and message are the content of the condition while the member is kept; empty otherwise.
	reason, message string
	// before is the condition from the last reconcile; nil if nothing has kept the member.
	before *metav1.Condition
}

// validates reports whether exported services may keep a deleted member. A member that has begun to
// leave goes on.
func (o observed) validates(mc *clusterv1beta1.MemberCluster) bool {
	skip := mc.Spec.DeleteOptions != nil && mc.Spec.DeleteOptions.ValidationMode == clusterv1beta1.ValidationSkip
	asked := o.Report != nil && o.Report.Spec.State == clusterv1beta1.ClusterStateLeave
	valid := o.validation.before != nil && o.validation.before.Status == metav1.ConditionTrue
	return !o.Deleted.IsZero() && !skip && !asked && !valid && o.NamespaceState == membernamespace.NamespaceOurs
}

// observeExports reads the services that keep a deleted member.
func (r *reconciliation) observeExports(ctx context.Context) error {
	r.o.validation.before = meta.FindStatusCondition(r.mc.Status.Conditions, clusterv1beta1.ConditionDeletionValidated)
	if !r.o.validates(r.mc) {
		return nil
	}
	mapping, err := r.Client.RESTMapper().RESTMapping(exportKind)
	if meta.IsNoMatchError(err) {
		return nil
	}
	var exports metav1.PartialObjectMetadataList
	if err == nil {
		exports.SetGroupVersionKind(mapping.GroupVersionKind.GroupVersion().WithKind(exportKind.Kind + "List"))
		err = r.Live.List(ctx, &exports, client.InNamespace(r.o.Namespace))
	}
	r.o.validation.keep(exports.Items, r.mc.Name, err)
	return ctx.Err()
}

// keep decides whether the found services keep the member. Services in deletion do not count.
func (v *exportCheck) keep(exports []metav1.PartialObjectMetadata, member string, err error) {
	const remedy = "kubectl patch membercluster %s --type=merge -p '{\"spec\":{\"deleteOptions\":{\"validationMode\":\"Skip\"}}}'"
	var names []string
	for i := range exports {
		if exports[i].DeletionTimestamp == nil {
			names = append(names, exports[i].Name)
		}
	}
	slices.Sort(names)
	switch {
	case err != nil:
		v.reason = reasons.ServicesUnreadable
		v.message = fmt.Sprintf("reading the exported services of the member failed: %s; the hub tries again every %s; to leave without this "+
			"check: "+remedy, err, validationRetry, member)
	case len(names) > 0:
		v.reason = reasons.ServicesExported
		v.message = fmt.Sprintf("the member exports %d services (%s): delete their ServiceExports on the cluster; the hub checks again within "+
			"%s; to leave at once: "+remedy, len(names), kube.JoinNames(names[:min(namedWorks, len(names))], len(names)), validationRetry, member)
	}
}

// validationRetry is the interval between checks of a kept member.
const validationRetry = 30 * time.Second

// since returns the begin of the wait for the agent of a kept member; zero if nothing has kept it.
func (v exportCheck) since(now time.Time) time.Time {
	switch {
	case v.before == nil:
		return time.Time{}
	case v.before.Status == metav1.ConditionTrue:
		return v.before.LastTransitionTime.Time
	}
	return now
}

// condition returns the condition, without a reason if there is none.
func (v exportCheck) condition() (c result) {
	switch {
	case v.reason != "":
		return result{metav1.ConditionFalse, v.reason, v.message}
	case v.before != nil:
		return result{metav1.ConditionTrue, reasons.DeletionValid, "no exported service keeps the member any more"}
	}
	return c
}
