package dashboard

import (
	"cmp"
	"fmt"
	"image"
	"image/color"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	fleetfacts "github.com/muster-fleet/muster/internal/fleet/facts"
	"github.com/muster-fleet/muster/internal/fleet/membership"
)

// frequent returns the most frequent colors of a picture.
func frequent(picture image.Image, most int) color.Palette {
	counts, bounds := map[color.Color]int{}, picture.Bounds()
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			counts[picture.At(x, y)]++
		}
	}
	colors := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), strings.Compare(fmt.Sprint(a), fmt.Sprint(b)))
	})
	return colors[:min(len(colors), most)]
}

// store is a Cluster of the staged fleet; it is ready if it has no reason.
type store struct {
	name, region, reason, message string
}

const unpulled = "Deployment monitoring/prometheus: 0/1 replicas are available: its image cannot be pulled"

// stores are the Clusters of the workspace stores.
var stores = []store{
	{"aarhus", "north", "", ""},
	{"bergen", "north", "", ""},
	{"berlin", "central", "", ""},
	{"copenhagen", "north", "", ""},
	{"hamburg", "central", "NotReady", "NotReady(1) [Bundle monitoring: " + unpulled + "]"},
	{"helsinki", "north", "", ""},
	{"lisbon", "south", "", ""},
	{"lyon", "south", "", ""},
	{"madrid", "south", "", ""},
	{"milan", "south", "NotReady", "Modified(1) [Bundle checkout: Deployment checkout/web: modified]"},
	{"munich", "central", "", ""},
	{"oslo", "north", "AgentLost", "agent lost: no heartbeat for 14 minutes"},
	{"paris", "south", "", ""},
	{"prague", "central", "", ""},
	{"rome", "south", "NotReady", "Modified(1) [Bundle checkout: Deployment checkout/web: modified]"},
	{"stockholm", "north", "", ""},
	{"tallinn", "north", "WaitCheckIn", "no agent has registered as this Cluster yet"},
	{"vienna", "central", "", ""},
	{"warsaw", "central", "", ""},
	{"zurich", "central", "", ""},
}

// staging creates the staged fleet once for all tests.
var staging sync.Once

// staged creates a fleet as a chain of stores would have it, with a problem of each frequent kind.
func staged(r rig) {
	r.t.Helper()
	staging.Do(func() {
		workspace := r.workspace("stores")
		for i, s := range stores {
			r.stagedStore(workspace, s, i)
		}
		for i, name := range []string{"plant-gdansk", "plant-porto", "plant-turin"} {
			r.stagedPlant(name, i)
		}
		r.stagedDeliveries(workspace)
		r.stagedRequests(workspace)
	})
}

// since returns a time before now.
func since(before time.Duration) metav1.Time { return metav1.NewTime(time.Now().Add(-before)) }

// lasting returns a condition that has lasted for a while.
func lasting(kind, reason, message string, lasts time.Duration) fleet.Condition {
	status := corev1.ConditionTrue
	if reason != "" {
		status = corev1.ConditionFalse
	}
	return fleet.Condition{
		Type: kind, Status: status, Reason: reason, Message: message, LastTransitionTime: since(lasts).UTC().Format(time.RFC3339),
	}
}

// stagedHistory has the last changes of some stores.
var stagedHistory = map[string][]clusterv1beta1.HistoryEntry{
	"oslo": {{Time: since(14 * time.Minute), Reason: clusterv1beta1.HistoryLost}},
	"lisbon": {
		{Time: since(331 * time.Minute), Reason: clusterv1beta1.HistoryLost}, {Time: since(5 * time.Hour), Reason: clusterv1beta1.HistoryBack},
	},
	"madrid": {
		{Time: since(330 * time.Minute), Reason: clusterv1beta1.HistoryLost}, {Time: since(5 * time.Hour), Reason: clusterv1beta1.HistoryBack},
	},
	"helsinki": {{Time: since(9 * time.Hour), Reason: clusterv1beta1.HistoryJoined}},
	"prague":   {{Time: since(21 * time.Hour), Reason: clusterv1beta1.HistoryJoined}},
	"vienna":   {{Time: since(21 * time.Hour), Reason: clusterv1beta1.HistoryJoined}},
}

func (r rig) stagedStore(workspace string, s store, i int) {
	r.t.Helper()
	c := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: s.name, Labels: map[string]string{
		"env": "prod", "region": s.region, "provider": "k3s",
	}}}
	if i%7 == 3 {
		c.Labels["wave"] = "canary"
	}
	r.check(r.Create(r.t.Context(), c))
	lasts := time.Duration(3+i*5) * 24 * time.Hour
	if s.reason != "" {
		lasts = time.Duration(9+i) * time.Minute
	}
	c.Status.Conditions = []fleet.Condition{
		lasting(fleet.ConditionReady, s.reason, s.message, lasts), lasting("Processed", "", "", 90*24*time.Hour),
	}
	c.Status.Display = fleet.ClusterDisplay{ReadyNodes: "3/3", ReadyBundles: "4/4"}
	c.Status.Agent = fleet.AgentStatus{LastSeen: metav1.Now(), KubernetesVersion: "v1.36.3", Version: "v0.3.0", ReadyNodes: 3}
	expires := metav1.NewTime(time.Now().Add(time.Duration(140+i) * time.Hour))
	c.Status.Credential = &fleet.CredentialStatus{Kind: "native", Expires: &expires, Key: "7c0e5d41b2a98f36", Sequence: 91}
	if i%5 == 0 {
		c.Status.Agent.KubernetesVersion = "v1.35.8"
	}
	c.Status.History = stagedHistory[s.name]
	delays := make([]int32, plottedHours)
	for ago := range delays { // slow networks six hours ago
		if delays[ago] = int32((i + ago) % 3); ago == 5 || ago == 6 {
			delays[ago] += int32(6 + i*ago%14)
		}
	}
	c.Status.HeartbeatDelay = delaysSince(0, delays...)
	switch s.reason {
	case "AgentLost":
		c.Status.Agent.LastSeen = since(14 * time.Minute)
	case "NotReady":
		c.Status.Display.ReadyBundles = "3/4"
	case "WaitCheckIn":
		c.Status.Display, c.Status.Agent, c.Status.Credential = fleet.ClusterDisplay{}, fleet.AgentStatus{}, nil
	}
	r.check(r.Status().Update(r.t.Context(), c))
	if s.reason == "AgentLost" {
		r.stagedReport(c)
	}
}

// stagedReport creates the report of a member, with its nodes and resources.
func (r rig) stagedReport(c *fleet.Cluster) {
	r.t.Helper()
	report := &clusterv1beta1.InternalMemberCluster{ObjectMeta: metav1.ObjectMeta{
		Namespace: r.workspace(membership.Namespace(c)), Name: c.Name,
	}}
	report.Spec.State = clusterv1beta1.ClusterStateJoin
	r.check(r.Create(r.t.Context(), report))
	report.Status.Nodes = &clusterv1beta1.NodeSummary{Total: 3, Ready: 3}
	report.Status.ResourceUsage = clusterv1beta1.ResourceUsage{
		ObservationTime: since(14 * time.Minute),
		Allocatable:     corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("24"), corev1.ResourceMemory: resource.MustParse("96Gi")},
		Available:       corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("9"), corev1.ResourceMemory: resource.MustParse("37Gi")},
	}
	r.check(r.Status().Update(r.t.Context(), report))
}

func (r rig) stagedPlant(name string, i int) {
	r.t.Helper()
	mc := &clusterv1beta1.MemberCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"env": "prod", "region": "plants"}},
		Spec: clusterv1beta1.MemberClusterSpec{Identity: rbacv1.Subject{
			Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceDefault, Name: name,
		}},
	}
	r.check(r.Create(r.t.Context(), mc))
	joined := since(time.Duration(40+i) * 24 * time.Hour)
	for _, kind := range []string{clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined, "Healthy"} {
		mc.Status.Conditions = append(mc.Status.Conditions, metav1.Condition{
			Type: kind, Status: metav1.ConditionTrue, Reason: "MemberCluster" + kind, LastTransitionTime: joined,
		})
	}
	mc.Status.Properties = map[string]clusterv1beta1.PropertyValue{
		fleetfacts.KubernetesVersion: {Value: "v1.36.3", ObservationTime: metav1.Now()},
		fleetfacts.NodeCount:         {Value: "5", ObservationTime: metav1.Now()},
	}
	mc.Status.AgentStatus = []clusterv1beta1.AgentStatus{{
		Type: clusterv1beta1.MemberAgent, LastReceivedHeartbeat: metav1.Now(), Conditions: []metav1.Condition{
			{Type: "Joined", Status: metav1.ConditionTrue, Reason: "Joined", LastTransitionTime: joined},
			{Type: "Healthy", Status: metav1.ConditionTrue, Reason: "Healthy", LastTransitionTime: joined},
		},
	}}
	r.check(r.Status().Update(r.t.Context(), mc))
}

// drifted is the difference of a Deployment on a member.
func drifted(member, patch string) fleet.NonReadyResource {
	return fleet.NonReadyResource{Name: "stores/" + member, State: fleet.StateModified, ModifiedStatus: []fleet.ModifiedStatus{{
		Kind: "Deployment", APIVersion: "apps/v1", Namespace: "checkout", Name: "web", Patch: patch,
	}}}
}

func (r rig) stagedDeliveries(workspace string) {
	r.t.Helper()
	checkout := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "checkout"}, Spec: fleet.BundleSpec{
		Targets: []fleet.BundleTarget{
			{Name: "canary", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"wave": "canary"}}},
			{Name: "stores", ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}},
		},
	}}
	r.check(r.Create(r.t.Context(), checkout))
	checkout.Status = fleet.BundleStatus{
		Conditions: []fleet.Condition{lasting(fleet.ConditionReady, "NotReady",
			"Modified(2) [Cluster stores/milan: Deployment checkout/web: modified; Cluster stores/rome: Deployment checkout/web: modified]",
			21*time.Minute)},
		Display: fleet.BundleDisplay{ReadyClusters: "18/20", State: string(fleet.StateModified)},
		PartitionStatus: []fleet.PartitionStatus{
			{Name: "canary", Count: 3, Summary: fleet.BundleSummary{Ready: 3, DesiredReady: 3}},
			{Name: "All others", Count: 17, Unavailable: 2, MaxUnavailable: 4,
				Summary: fleet.BundleSummary{Ready: 15, DesiredReady: 17, Modified: 2}},
		},
		Summary: fleet.BundleSummary{Ready: 18, DesiredReady: 20, Modified: 2, NonReadyResources: []fleet.NonReadyResource{
			drifted("milan", `{"spec":{"replicas":3,"paused":null}}`), drifted("rome", `{"spec":{"replicas":3}}`),
		}},
	}
	r.check(r.Status().Update(r.t.Context(), checkout))
	r.stagedSources(workspace)
	policies := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: "store-policies"}, Spec: placement.PlacementSpec{
		ResourceSelectors: []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: "policies"}},
	}}
	r.check(r.Create(r.t.Context(), policies))
	policies.Status = placement.PlacementStatus{ObservedResourceIndex: "4", Members: "3/3"}
	for _, kind := range []string{placement.ConditionScheduled, placement.ConditionApplied, placement.ConditionAvailable} {
		policies.Status.Conditions = append(policies.Status.Conditions, metav1.Condition{
			Type: "ClusterResourcePlacement" + kind, Status: metav1.ConditionTrue, Reason: kind, LastTransitionTime: since(26 * time.Hour),
		})
	}
	r.check(r.Status().Update(r.t.Context(), policies))
}

// stagedSources creates a GitRepo with two Bundles, and a HelmOp with one.
func (r rig) stagedSources(workspace string) {
	r.t.Helper()
	prod := &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "web-shop"}, Spec: fleet.GitRepoSpec{
		Repo: "https://git.example.com/retail/web-shop", Branch: "main", Targets: []fleet.GitTarget{{Name: "stores", ClusterSelector: prod}},
	}}
	r.check(r.Create(r.t.Context(), repo))
	polled := since(4 * time.Minute)
	repo.Status = fleet.GitRepoStatus{
		Commit: "3f9c1a7be04d2c5586e1907a4bd3f2c6d8e05a91", PollingCommit: "3f9c1a7be04d2c5586e1907a4bd3f2c6d8e05a91",
		LastWebhookTime: &polled, LastPollingTime: &polled, Bundles: 2, Display: fleet.SourceDisplay{ReadyBundleDeployments: "40/40"},
		Conditions: []fleet.Condition{lasting(fleet.ConditionReady, "", "", 3*time.Hour)},
	}
	r.check(r.Status().Update(r.t.Context(), repo))
	for _, name := range []string{"web-shop-cart", "web-shop-catalog"} {
		r.stagedBundle(repo, "GitRepo", fleet.LabelRepoName, name, 20, nil)
	}
	op := &fleet.HelmOp{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "monitoring"}}
	op.Spec.Helm = &fleet.HelmOptions{Repo: "https://charts.example.com", Chart: "prometheus", Version: "^27"}
	op.Spec.Targets = []fleet.BundleTarget{{Name: "stores", ClusterSelector: prod}}
	r.check(r.Create(r.t.Context(), op))
	op.Status.Version, op.Status.Conditions = "27.4.1", []fleet.Condition{lasting(fleet.ConditionReady, "", "", 5*time.Hour)}
	r.check(r.Status().Update(r.t.Context(), op))
	r.stagedBundle(op, "HelmOp", fleet.LabelHelmOpName, "monitoring", 19, []fleet.NonReadyResource{{
		Name: "stores/hamburg", State: fleet.StateNotReady, Message: unpulled,
	}})
}

// stagedBundle creates the Bundle of a GitRepo or HelmOp.
func (r rig) stagedBundle(owner client.Object, kind, label, name string, ready int, wrong []fleet.NonReadyResource) {
	r.t.Helper()
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{
		Namespace: owner.GetNamespace(), Name: name, Labels: map[string]string{label: owner.GetName()},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(owner, fleet.GroupVersion.WithKind(kind))},
	}}
	r.check(r.Create(r.t.Context(), b))
	b.Status.Conditions = []fleet.Condition{lasting(fleet.ConditionReady, "", "", 3*time.Hour)}
	b.Status.Display = fleet.BundleDisplay{ReadyClusters: fmt.Sprintf("%d/20", ready)}
	if len(wrong) > 0 {
		message := "NotReady(1) [Cluster " + wrong[0].Name + ": " + wrong[0].Message + "]"
		b.Status.Conditions[0] = lasting(fleet.ConditionReady, "NotReady", message, 13*time.Minute)
		b.Status.Display.State = string(fleet.StateNotReady)
	}
	b.Status.Summary = fleet.BundleSummary{Ready: ready, DesiredReady: 20, NotReady: 20 - ready, NonReadyResources: wrong}
	r.check(r.Status().Update(r.t.Context(), b))
}

func (r rig) stagedRequests(workspace string) {
	r.t.Helper()
	expires := metav1.NewTime(time.Now().Add(31 * time.Hour))
	for name, used := range map[string]int32{"new-stores": 2, "baltics": 1} {
		token := &fleet.ClusterRegistrationToken{
			ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: name},
			Spec: fleet.ClusterRegistrationTokenSpec{
				TTL: &metav1.Duration{Duration: 48 * time.Hour}, MaxRegistrations: new(int32(5)), Approval: fleet.ApprovalManual,
				Labels: map[string]string{"env": "prod"},
			},
		}
		r.check(r.Create(r.t.Context(), token))
		token.Status.Expires, token.Status.Registrations, token.Status.Used = &expires, used, fmt.Sprintf("%d/5", used)
		token.Status.Conditions = []fleet.Condition{lasting(fleet.ConditionReady, "", "", 17*time.Hour)}
		r.check(r.Status().Update(r.t.Context(), token))
	}
	for name, labels := range map[string]map[string]string{
		"riga": {"env": "prod", "region": "north"}, "vilnius": {"env": "prod", "region": "north"},
	} {
		request := &fleet.ClusterRegistration{Spec: fleet.ClusterRegistrationSpec{
			ClientID: name, ClientRandom: "r4nd0m", ClusterLabels: labels,
		}}
		request.Namespace, request.GenerateName = workspace, "request-"
		request.Labels = map[string]string{fleet.LabelRegistrationToken: "baltics"}
		r.check(r.Create(r.t.Context(), request))
		request.Status.State, request.Status.Reason = fleet.RegistrationPending, "ApprovalRequired"
		request.Status.Message = "ClusterRegistrationToken stores/baltics requires approval: muster approve " + workspace + "/" + request.Name
		request.Status.ClusterName = name
		r.check(r.Status().Update(r.t.Context(), request))
	}
}
