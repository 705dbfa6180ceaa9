package dashboard

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/ui/explain"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// shownRequest is the page of a registration request.
type shownRequest struct {
	Name, State   string
	UID           types.UID
	Reason        string
	Created       time.Time
	Findings      []explain.Finding
	Facts         []fact
	Dropped       []string
	Comparisons   []comparison
	Cluster       *link
	ClusterState  string
	Token         *link
	Pending, Made bool
	// Refused is the reason why the visitor may not decide; empty if they may.
	Refused string
	Unseen  []string
}

// comparison is a property of the request, compared with the Cluster of the hub.
type comparison struct {
	Name, Requested, Known string
}

// Verdict reports the outcome of the comparison.
func (c comparison) Verdict() string {
	switch {
	case c.Requested+c.Known == "":
		return "none"
	case c.Known == "":
		return "new"
	case c.Requested == "":
		return "not in the request"
	case c.Requested == c.Known:
		return "same"
	}
	return "different"
}

// comparisonsOf compares a request with its Cluster on the hub; nil for a new Cluster.
func comparisonsOf(r *fleet.ClusterRegistration, existing *fleet.Cluster) (comparisons []comparison) {
	var id, key string
	var labels map[string]string
	if existing != nil {
		id, key, labels = membership.ClientID(existing), existing.Annotations[fleet.AnnotationAgentKey], existing.Labels
	}
	requestedKey := ""
	if len(r.Spec.AgentKey) > 0 {
		requestedKey = credential.Fingerprint(r.Spec.AgentKey)
	}
	comparisons = []comparison{{"Client ID", r.Spec.ClientID, id}, {"Key of the agent", requestedKey, key}}
	for _, label := range slices.Sorted(maps.Keys(r.Spec.ClusterLabels)) {
		comparisons = append(comparisons, comparison{"Label " + label, r.Spec.ClusterLabels[label], labels[label]})
	}
	return comparisons
}

// request is the page of one request, read as the visitor.
func (s *Server) request(w http.ResponseWriter, r *http.Request, v *visitor) error {
	live, stale, err := s.follow(r, v, requests)
	if err != nil {
		return err
	}
	o := &fleet.ClusterRegistration{}
	if err := v.Get(r.Context(), client.ObjectKey{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}, o); err != nil {
		return err
	}
	shown := &shownRequest{
		Name: view.NameOf(o), State: view.State(o), UID: o.UID, Reason: o.Status.Reason, Created: o.CreationTimestamp.Time,
		Pending: o.Status.State == fleet.RegistrationPending, Made: undoable(o), Dropped: o.Status.DroppedLabels,
	}
	if shown.Pending || shown.Made {
		permitted, err := s.mayDecide(r.Context(), v, requests, o.Namespace)
		if err != nil {
			return err
		}
		if !permitted {
			shown.Refused = "You need the right to patch and approve " + requests + "."
		}
	}
	related, unseen := view.Related(r.Context(), v, o)
	shown.Findings = explain.Of(append([]client.Object{o}, related...)...)
	for _, err := range unseen {
		shown.Unseen = append(shown.Unseen, err.Error())
	}
	shown.origin(o)
	shown.compare(r.Context(), v, o)
	return s.show(w, r, v, "request", page{
		Title: shown.Name, View: "registration", Stale: stale, Live: live, Body: shown,
		Crumbs: crumbs("Registration", registrationPath, shown.Name),
	})
}

// undoable reports whether a user has decided about a request, and can withdraw the decision. A
// newer request replaces an older one for good.
func undoable(r *fleet.ClusterRegistration) bool {
	return decision.Decided(r) && !r.Status.Granted && !isSuperseded(r)
}

// origin adds the facts about the source of the request.
func (d *shownRequest) origin(o *fleet.ClusterRegistration) {
	if requester := o.Annotations[fleet.AnnotationRequester]; requester != "" {
		d.Facts = append(d.Facts, fact{"Requested by", requester})
	}
	if by := o.Annotations[fleet.AnnotationApprovedBy]; by != "" {
		d.Facts = append(d.Facts, fact{"Decided by", by + membership.DecidedBecause(o)})
	}
	if len(o.Spec.Signature) == 0 {
		d.Facts = append(d.Facts, fact{"Proof", "none: the agent has no key"})
	} else {
		d.Facts = append(d.Facts, fact{"Proof", "signed with the key of the agent"})
	}
	if name := o.Labels[fleet.LabelRegistrationToken]; name != "" {
		d.Token = &link{o.Namespace + "/" + name, "/tokens/" + o.Namespace + "/" + name}
	}
}

// compare adds the comparison with the Cluster, as far as the visitor may read it.
func (d *shownRequest) compare(ctx context.Context, v *visitor, o *fleet.ClusterRegistration) {
	var existing *fleet.Cluster
	if name := o.Status.ClusterName; name != "" {
		cluster := &fleet.Cluster{}
		switch err := v.Get(ctx, client.ObjectKey{Namespace: o.Namespace, Name: name}, cluster); {
		case err == nil:
			existing, d.ClusterState = cluster, view.State(cluster)
			d.Cluster = &link{view.NameOf(cluster), memberPath(view.NameOf(cluster))}
		case !apierrors.IsNotFound(err):
			d.Unseen = append(d.Unseen, "The Cluster of the request: "+strings.TrimSpace(err.Error()))
		}
	}
	d.Comparisons = comparisonsOf(o, existing)
}
