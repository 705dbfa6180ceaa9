package dashboard

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// mayDecide reports whether a visitor may approve and deny objects of a workspace. That needs the
// verb approve, besides the right to edit them.
func (s *Server) mayDecide(ctx context.Context, v *visitor, resource, namespace string) (bool, error) {
	approve, err := v.may(ctx, "approve", resource, namespace)
	if err != nil || !approve {
		return false, err
	}
	return v.may(ctx, "patch", resource, namespace)
}

// annotate sets an annotation of an object as the visitor, or removes it if the value is nil. The
// object must still be the one seen by the visitor, in the same state.
func annotate(ctx context.Context, v *visitor, o client.Object, form func(string) string, said, annotation string, value any) error {
	if o.GetUID() != types.UID(form("uid")) {
		return &inputError{fmt.Errorf("%s is another one than you have seen: look at it, and decide again", view.Title(o))}
	}
	if form("reason") != said {
		return &inputError{fmt.Errorf("%s has changed since you have seen it, it is %s (%s): look at it, and decide again",
			view.Title(o), view.State(o), view.Because(o))}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": o.GetUID(), "annotations": map[string]any{annotation: value}}})
	if err != nil {
		return err
	}
	return v.Patch(ctx, o, client.RawPatch(types.MergePatchType, patch))
}

// decide approves or denies a request.
func (s *Server) decide(w http.ResponseWriter, r *http.Request, v *visitor) error {
	value, known := map[string]any{"approve": "true", "deny": "false", "reconsider": nil}[r.PostFormValue("decision")]
	if !known {
		return &inputError{errors.New("the decision about a request is approve, deny or reconsider")}
	}
	o := &fleet.ClusterRegistration{}
	if err := v.Get(r.Context(), client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, o); err != nil {
		return err
	}
	if err := annotate(r.Context(), v, o, r.PostFormValue, o.Status.Reason, fleet.AnnotationApproved, value); err != nil {
		return err
	}
	http.Redirect(w, r, local(cmp.Or(r.PostFormValue("to"), registrationPath)), http.StatusSeeOther)
	return nil
}

// memberDecision is a decision about a member in one step.
type memberDecision struct {
	Value, Text string
	// Effect is the consequence of a decision that no other decision undoes.
	Effect     string
	annotation string
	value      any
}

var (
	approveMember = memberDecision{"approve", "Approve what is delivered to it", "", fleet.AnnotationApproved, "true"}
	denyMember    = memberDecision{"deny", "Deliver nothing new to it", "", fleet.AnnotationApproved, "false"}
	revokeMember  = memberDecision{
		"revoke", "Revoke it", "All its access ends at once, whoever has its credential. Its record stays, and so does what is on its cluster. " +
			"It comes back with another token only.", clusterv1beta1.AnnotationRevoked, "true",
	}
	readmitMember  = memberDecision{"readmit", "Let it in again", "", clusterv1beta1.AnnotationRevoked, nil}
	allOfAMember   = []memberDecision{approveMember, denyMember, revokeMember, readmitMember}
	approvesMember = map[string]bool{approveMember.Value: true, denyMember.Value: true}
)

// decisionsOf returns the decisions that would change a member's current state.
func decisionsOf(record client.Object) (all []memberDecision) {
	if record.GetDeletionTimestamp() != nil {
		return nil
	}
	if cluster, ok := record.(*fleet.Cluster); ok && kube.FindCondition(cluster.Status.Conditions, fleet.ConditionDeliveryApproved) != nil {
		if membership.AwaitsApproval(cluster) {
			all = append(all, approveMember)
		}
		if record.GetAnnotations()[fleet.AnnotationApproved] != denyMember.value {
			all = append(all, denyMember)
		}
	}
	if membership.Revoked(record) {
		return append(all, readmitMember)
	}
	return append(all, revokeMember)
}

// allowedDecisions returns the decisions about a member that the visitor may make.
func (s *Server) allowedDecisions(ctx context.Context, v *visitor, record client.Object) (allowed []memberDecision, err error) {
	resource := memberClusters
	if record.GetNamespace() != "" {
		resource = clusters
	}
	for _, d := range decisionsOf(record) {
		var may bool
		if approvesMember[d.Value] {
			may, err = s.mayDecide(ctx, v, resource, record.GetNamespace())
		} else {
			may, err = v.may(ctx, "patch", resource, record.GetNamespace())
		}
		if err != nil {
			return nil, err
		}
		if may {
			allowed = append(allowed, d)
		}
	}
	return allowed, nil
}

// decidable returns the state that a decision about a member depends on: a visitor with an
// outdated page must decide again.
func decidable(record client.Object) string {
	var values []string
	for _, d := range decisionsOf(record) {
		values = append(values, d.Value)
	}
	return strings.Join(values, " ")
}

// decideMember approves or denies deliveries to a member, or revokes or restores its access.
func (s *Server) decideMember(w http.ResponseWriter, r *http.Request, v *visitor) error {
	record, err := readMember(r, v)
	if err != nil {
		return err
	}
	for _, d := range allOfAMember {
		if d.Value != r.PostFormValue("decision") {
			continue
		}
		if err := annotate(r.Context(), v, record, r.PostFormValue, decidable(record), d.annotation, d.value); err != nil {
			return err
		}
		http.Redirect(w, r, memberPath(view.NameOf(record)), http.StatusSeeOther)
		return nil
	}
	return &inputError{errors.New("the decision about a member is approve, deny, revoke or readmit")}
}

// readMember reads a request's membership object, as the visitor.
func readMember(r *http.Request, v *visitor) (client.Object, error) {
	key := client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	var record client.Object = &clusterv1beta1.MemberCluster{}
	if key.Namespace != "" {
		record = &fleet.Cluster{}
	}
	return record, v.Get(r.Context(), key, record)
}
