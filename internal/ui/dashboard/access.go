package dashboard

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/redaction"
	"github.com/muster-fleet/muster/internal/ui/view"
)

// mostRequests limits the requests on the page of a member.
const mostRequests = 20

// access is the way of a member to the hub: its identity, key, credential and approvals.
type access struct {
	Facts []fact
	// Expires is the end of the credential; zero if it has none.
	Expires time.Time
	// Requests are the registration requests of a Cluster, the newest first.
	Requests []request
	More     int
}

// readAccess reads the access of a member. It shows only the requests that the visitor may list.
func (m *shownMember) readAccess(ctx context.Context, s *Server, v *visitor, record client.Object) error {
	m.Access = &access{Facts: accessFacts(record)}
	if expires := view.Expires(record); expires != nil {
		m.Access.Expires = expires.Time
	}
	cluster, isCluster := record.(*fleet.Cluster)
	if !isCluster {
		return nil
	}
	listed, stale, err := s.entries(ctx, v, requests)
	if err != nil {
		return err
	}
	m.Unseen = append(m.Unseen, stale...)
	id := membership.ClientID(cluster)
	for _, e := range listed {
		if e.namespace == cluster.Namespace && (e.asked.cluster == cluster.Name || id != "" && e.asked.clientID == id) {
			m.Access.Requests = append(m.Access.Requests, request{entry: e})
		}
	}
	m.Access.sort()
	return nil
}

// accessFacts returns the facts about the access of a member.
func accessFacts(record client.Object) (facts []fact) {
	add := func(name, text string) {
		if text != "" {
			facts = append(facts, fact{name, text})
		}
	}
	var credential *fleet.CredentialStatus
	switch o := record.(type) {
	case *fleet.Cluster:
		add("Client ID", membership.ClientID(o))
		credential = o.Status.Credential
	case *clusterv1beta1.MemberCluster:
		identity := o.Spec.Identity
		add("Identity", strings.TrimSpace(identity.Kind+" "+strings.TrimPrefix(identity.Namespace+"/"+identity.Name, "/")))
		if c := o.Status.Credential; c != nil {
			credential = &fleet.CredentialStatus{Kind: c.Kind, Expires: c.Expires, Key: c.Key, Sequence: c.Sequence, Superseded: c.Superseded}
		}
	}
	annotations := record.GetAnnotations()
	if credential != nil {
		add("Credential", credential.Kind)
		add("Renewals", fmt.Sprint(credential.Sequence))
		if credential.Superseded != nil {
			add("Older credential in use", fmt.Sprintf("sequence %d: the cluster was copied or restored", *credential.Superseded))
		}
		add("Key", cmp.Or(annotations[fleet.AnnotationAgentKey], credential.Key))
	}
	switch annotations[fleet.AnnotationApproved] {
	case membership.Approved:
		add("Deliveries", "approved")
	case membership.Denied:
		add("Deliveries", "denied")
	}
	if membership.Revoked(record) {
		add("Access", "revoked")
	}
	if _, message, since := membership.QuarantineShown(record); message != "" {
		add("Quarantine", fmt.Sprintf("since %s: %s", since.UTC().Format(time.RFC3339), message))
	}
	if membership.Cordoned(record) {
		add("New deliveries", "none: the member is cordoned")
	}
	return facts
}

// document is an object as YAML.
type document struct {
	Lines []yamlLine
	// Commands print the whole object.
	Commands []string
}

// yamlLine is a line of YAML: its indentation, its key with the colon, and the rest.
type yamlLine struct{ Indent, Key, Rest string }

// readYAML prints the object without possible secrets, as muster support-bundle does.
func (m *shownMember) readYAML(_ context.Context, _ *Server, _ *visitor, record client.Object) error {
	gvk, err := apiutil.GVKForObject(record, scheme)
	if err != nil {
		return err
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(record)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", m.Title, err)
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetGroupVersionKind(gvk)
	redaction.Object(o)
	text, err := yaml.Marshal(o.Object)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", m.Title, err)
	}
	resource, short := memberClusters, "memberclusters"
	if record.GetNamespace() != "" {
		resource, short = clusters, "clusters"
	}
	m.YAML = &document{
		Lines: yamlLines(string(text)),
		Commands: []string{
			fmt.Sprintf("%s get %s.%s %s -o yaml", view.CommandLine("kubectl", "-n", record.GetNamespace()), resource, groupOf(resource),
				record.GetName()),
			view.CommandLine("muster get "+short+" "+m.Name, "-o", "yaml"),
		},
	}
	return nil
}

// yamlLines splits YAML into lines for highlighting.
func yamlLines(text string) (lines []yamlLine) {
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		line = strings.TrimRight(line, "\n")
		bare := strings.TrimLeft(line, " -")
		one := yamlLine{Indent: line[:len(line)-len(bare)], Rest: bare}
		if key, _, found := strings.Cut(bare+" ", ": "); found && !strings.ContainsAny(key, " \"'") {
			one.Key, one.Rest = key+":", bare[len(key)+1:]
		}
		lines = append(lines, one)
	}
	return lines
}

// sort orders the requests, the newest first, and keeps some.
func (a *access) sort() {
	slices.SortStableFunc(a.Requests, func(x, y request) int { return y.since.Compare(x.since) })
	a.Requests, a.More = atMost(mostRequests, a.Requests)
}
