package registration

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/hub/members/membernamespace"
	"github.com/muster-fleet/muster/internal/kube"
)

const (
	// maxLabels bounds the labels in a request, because each costs a lookup.
	maxLabels = 64
	// maxDropped bounds the list of dropped labels, maxDroppedText the text of each.
	maxDropped     = 16
	maxDroppedText = 256
)

// labelRule decides on the labels in a request.
type labelRule struct {
	// ignored: this hub accepts no labels from agents.
	ignored bool
	// token is the request's token, as workspace/name; allowed is its spec.allowedLabelKeys.
	token   string
	allowed []string
	// stamps holds the labels stamped by the token itself. stamped maps the keys stamped by tokens of
	// the workspace to the name of one such token.
	stamps, stamped map[string]string
	// exists: the Cluster already exists, with these labels.
	exists bool
	labels map[string]string
}

// acceptLabels returns the permitted labels of an agent, and the dropped ones, each with the cause.
func acceptLabels(requested map[string]string, rule labelRule) (accepted map[string]string, dropped []string) {
	accepted = map[string]string{}
	for _, key := range slices.Sorted(maps.Keys(requested)) {
		if key == fleet.LabelCreatedByAgentPod { // names the requesting Pod, a different one each time
			if !rule.ignored {
				accepted[key] = requested[key]
			}
			continue
		}
		why := rule.refuses(key, requested[key])
		if why == "" {
			accepted[key] = requested[key]
			continue
		}
		dropped = append(dropped, kube.Clip(key+": "+why, maxDroppedText))
	}
	if more := len(dropped) - maxDropped; more > 0 {
		dropped = append(dropped[:maxDropped], fmt.Sprintf("and %d more", more))
	}
	return accepted, dropped
}

// refuses returns the reason why an agent may not set a label, or "".
func (l labelRule) refuses(key, value string) string {
	switch {
	case has(l.stamps, key, value), l.exists && has(l.labels, key, value):
		return "" // the Cluster has the label anyway
	case l.ignored:
		return "this hub accepts no labels from agents (ignoreClusterRegistrationLabels)"
	case membernamespace.ReservedLabel(key) || strings.HasPrefix(key, fleet.LabelPrefixStamped):
		return "has a reserved prefix: only administrators set such labels"
	case l.stamped[key] != "":
		return fmt.Sprintf("is stamped by ClusterRegistrationToken %s, so no request may bring it", l.stamped[key])
	case !allows(l.allowed, key):
		return fmt.Sprintf("is not among spec.allowedLabelKeys of ClusterRegistrationToken %s", l.token)
	case l.exists:
		return "the Cluster existed before, and keeps its labels: an administrator can label it"
	}
	return ""
}

func has(labels map[string]string, key, value string) bool {
	is, set := labels[key]
	return set && is == value
}

// allows reports whether a list of keys contains a key, or a prefix of it. An empty list allows
// all.
func allows(keys []string, key string) bool {
	return len(keys) == 0 || slices.ContainsFunc(keys, func(allowed string) bool {
		prefix, all := strings.CutSuffix(allowed, "*")
		return key == allowed || all && strings.HasSuffix(prefix, "/") && strings.HasPrefix(key, prefix)
	})
}

// observeLabels determines the labels of the Cluster from the request and from its token.
func (c *Controller) observeLabels(ctx context.Context, r *fleet.ClusterRegistration, o *observation) error {
	rule := labelRule{
		ignored: c.Config.Current().IgnoreClusterRegistrationLabels, token: r.Namespace + "/" + o.tokenName, stamped: map[string]string{},
	}
	if token := o.registrationToken; token != nil {
		o.stamps = token.Spec.Labels
		rule.allowed, rule.stamps = token.Spec.AllowedLabelKeys, o.stamps
		if o.tokenProblem = cmp.Or(o.tokenProblem, membernamespace.StampProblem(token.Spec)); o.tokenProblem != "" {
			return nil
		}
	}
	if o.match != nil && o.match.Spec.KubeConfigSecret != "" {
		return nil // the import has given the agent the labels of the Cluster
	}
	if o.match != nil {
		rule.exists, rule.labels = true, o.match.Labels
	}
	if n := len(r.Spec.ClusterLabels); n > maxLabels {
		o.labelProblem = fmt.Sprintf("the request has %d labels, at most %d are allowed", n, maxLabels)
		return nil
	}
	for key := range r.Spec.ClusterLabels {
		var tokens fleet.ClusterRegistrationTokenList
		if err := c.Client.List(ctx, &tokens, client.InNamespace(r.Namespace), client.MatchingFields{indexStampedKey: key}, client.Limit(1),
			client.UnsafeDisableDeepCopy); err != nil {
			return fmt.Errorf("listing the tokens that stamp label %s: %w", key, err)
		}
		if len(tokens.Items) > 0 {
			rule.stamped[key] = tokens.Items[0].Namespace + "/" + tokens.Items[0].Name
		}
	}
	o.labels, o.dropped = acceptLabels(r.Spec.ClusterLabels, rule)
	o.labelProblem = membernamespace.LabelProblem(o.labels)
	return nil
}

// record returns the annotation with the labels.
func (o observation) record() membernamespace.LabelRecord {
	record := membernamespace.LabelRecord{Stamped: o.stamps, Dropped: o.dropped}
	if len(o.stamps) > 0 {
		record.Token = o.tokenName
	}
	return record
}

// stamp replaces the labels of the previous token with the labels of the request's token, and pins
// the key of the agent to the Cluster.
func (o observation) stamp(cluster *fleet.Cluster) error {
	recorded, wanted := membernamespace.ReadLabelRecord(cluster), o.record()
	if !equality.Semantic.DeepEqual(recorded.Stamped, wanted.Stamped) || recorded.Token != wanted.Token {
		cluster.Labels = recorded.Restamp(cluster.Labels, o.stamps)
	}
	if !equality.Semantic.DeepEqual(recorded, wanted) {
		var err error
		if cluster.Annotations, err = wanted.Store(cluster.Annotations); err != nil {
			return err
		}
	}
	// An empty annotation keeps the report of the previous agent from pinning its key again.
	if o.key != "" || cluster.Annotations[fleet.AnnotationAgentKey] != "" {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, fleet.AnnotationAgentKey, o.key)
	}
	return nil
}

// stampedKeys indexes tokens by the keys of their stamped labels.
func stampedKeys(o client.Object) []string {
	return slices.Collect(maps.Keys(o.(*fleet.ClusterRegistrationToken).Spec.Labels))
}
