package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	muster "github.com/muster-fleet/muster/api/muster/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/fleet/agentroles"
	"github.com/muster-fleet/muster/internal/fleet/decision"
	"github.com/muster-fleet/muster/internal/fleet/membership"
	"github.com/muster-fleet/muster/internal/naming"
)

// quarantine sets the annotation that quarantines a member, or removes it (null).
func quarantine(by client.Client, member client.Object, value string) error {
	patch := []byte(`{"metadata":{"annotations":{"` + fleet.AnnotationQuarantined + `":` + value + `}}}`)
	return by.Patch(context.Background(), member.DeepCopyObject().(client.Object), client.RawPatch(types.MergePatchType, patch))
}

// untilQuarantined waits until a member shows the reason in its condition Quarantined, "" for none,
// and returns the message.
func (f fixture) untilQuarantined(member client.Object, reason string) (message string) {
	f.t.Helper()
	f.eventually(fmt.Sprintf("%s is %q", member.GetName(), reason), func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(member), member); err != nil {
			return err
		}
		shown, said, since := membership.QuarantineShown(member)
		if message = said; shown != reason || (reason == "") != since.IsZero() {
			return fmt.Errorf("it is %q since %s: %s", shown, since, said)
		}
		return nil
	})
	return message
}

// confined checks what a credential of a quarantined member may do.
func (f fixture) confined(bearer, namespace, name string) {
	f.t.Helper()
	ctx, as := context.Background(), f.as(bearer)
	in := func(name string) types.NamespacedName { return types.NamespacedName{Namespace: namespace, Name: name} }
	f.refused("it lists BundleDeployments", as.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace)))
	f.refused("it lists Works", as.List(ctx, &placement.WorkList{}, client.InNamespace(namespace)))
	f.refused("it reads values", as.Get(ctx, in("app"), &corev1.Secret{}))
	f.refused("it reads contents", as.Get(ctx, types.NamespacedName{Name: "any"}, &fleet.Content{}))
	f.check(as.Get(ctx, in(naming.HeartbeatLease), &coordinationv1.Lease{}))
	f.check(as.Get(ctx, in(name), &clusterv1beta1.InternalMemberCluster{}))
}

// TestAQuarantinedClusterKeepsItsHeartbeatAndNothingElse has a real agent, and a watch that stays
// open. The quarantine lasts through a restart of the hub and another registration.
func TestAQuarantinedClusterKeepsItsHeartbeatAndNothingElse(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "web"})
	name := naming.Cluster("web")
	f.untilReady(name, "Ready")
	const app = "defaultNamespace: default\nhelm: {values: {secret: before}}" + configMap + everywhere
	bundle, gone := f.bundle("app", app), f.bundle("gone", configMap+everywhere)
	bearer, namespace := m.credential()
	at := place{f, name, namespace}
	before := at.deployment("app", there)
	at.deployment("gone", there)
	watched := f.spy(bearer, namespace, deploymentResource)
	f.eventually("the watch sees what is there", func() error { return errors.Join(watched.saw("app"), watched.saw("gone")) })

	record := f.clusterRecord(name)
	f.check(f.Get(ctx, client.ObjectKeyFromObject(record), record))
	f.check(decision.Quarantine.Because("odd traffic").Write(ctx, f, record))
	message := f.untilQuarantined(record, "Quarantined")
	for _, text := range []string{"(odd traffic)", "muster quarantine " + f.workspace + "/" + name + " --undo"} {
		if !strings.Contains(message, text) {
			t.Errorf("it does not say %q: %s", text, message)
		}
	}
	f.eventually("an Event says so", func() error { return f.event("Quarantined", name, "odd traffic") })
	f.untilReady(name, "Quarantined")
	f.confined(bearer, namespace, name)
	seen := len(watched.events())

	f.change(bundle, func() { bundle.Spec.ForceSyncGeneration++ })
	f.bundle("new", configMap+everywhere)
	f.check(f.Delete(ctx, gone))
	f.untilBundle("gone", fleet.ConditionReady, corev1.ConditionFalse, "quarantined", "muster quarantine "+f.workspace+"/"+name)
	f.restartHub()
	f.check(f.Create(ctx, &rbacv1.RoleBinding{ // as a registration with an outdated cache
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: agentroles.MemberRole,
			Labels:      map[string]string{fleet.LabelManaged: "true"},
			Annotations: map[string]string{fleet.AnnotationClusterNamespace: f.workspace, fleet.LabelCluster: name}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: agentroles.MemberRole},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: naming.MemberServiceAccount}},
	}))
	f.eventually("the right is gone again", func() error {
		return f.absent(f.get(&rbacv1.RoleBinding{}, namespace, agentroles.MemberRole))
	})
	f.confined(bearer, namespace, name)

	account := &corev1.ServiceAccount{}
	f.check(f.get(account, namespace, naming.MemberServiceAccount))
	_, values = f.token("another-token", "")
	m.bootstrap(values)
	f.eventually("the agent has registered again", func() error {
		now := &corev1.ServiceAccount{}
		if err := f.get(now, namespace, naming.MemberServiceAccount); err != nil || now.UID == account.UID {
			return fmt.Errorf("its account is %s, %v", now.UID, err)
		}
		return nil
	})
	f.untilReady(name, "Quarantined")
	bearer, _ = m.credential()
	f.confined(bearer, namespace, name)
	key, err := credential.ParseAgentKey(f.keySecret(m.agentNamespace).Data["key"])
	f.check(err)
	other := f.mustAsk(values, f.signed(key, values, "other", answerKey(t)))
	f.untilState(&other, fleet.RegistrationDenied, "Quarantined")
	if now := watched.events(); len(now) != seen {
		t.Errorf("the watch was sent %v", now[seen:])
	}
	f.check(watched.survives())

	f.check(decision.Unquarantine.Write(ctx, f, record))
	f.untilQuarantined(record, "")
	at.deployment("new", there)
	at.deployment("app", func(d fleet.BundleDeployment) error {
		if d.UID != before.UID || d.Spec.Options.ForceSyncGeneration == before.Spec.Options.ForceSyncGeneration {
			return errors.New("it is as before")
		}
		return nil
	})
	f.eventually("the deleted Bundle goes", func() error { return f.absent(f.get(&fleet.Bundle{}, f.workspace, "gone")) })
	as := f.as(bearer)
	f.eventually("it reads what is delivered", func() error {
		return errors.Join(as.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace)), f.readsContents(namespace),
			as.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "app"}, &corev1.Secret{}))
	})
	f.untilAudited(f.workspace, name, muster.AuditQuarantined, muster.AuditQuarantineEnded)
}

// absent returns an error unless an object was not found.
func (f fixture) absent(err error) error {
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("it is there: %w", err)
	}
	return nil
}

// untilAudited waits for one entry of each reason about an object. The first names its user.
func (f fixture) untilAudited(namespace, name string, reasons ...muster.AuditReason) {
	f.t.Helper()
	f.eventually("the audit has the quarantine", func() error {
		var list muster.AuditEntryList
		if err := f.List(context.Background(),
			&list, client.InNamespace(namespace), client.MatchingFields{"spec.object.name": name}); err != nil {
			return err
		}
		var found []muster.AuditReason
		for _, e := range list.Items {
			if slices.Contains(reasons, e.Spec.Reason) {
				found = append(found, e.Spec.Reason)
			}
			if e.Spec.Reason == reasons[0] && e.Spec.Who == "" {
				return fmt.Errorf("it names nobody: %s", e.Spec.Message)
			}
		}
		slices.Sort(found)
		if want := slices.Sorted(slices.Values(reasons)); !slices.Equal(found, want) {
			return fmt.Errorf("it has %v", found)
		}
		return nil
	})
}

// TestAQuarantinedMemberClusterKeepsItsWorks has a played agent of KubeFleet's, and a placement. It
// changes, and is deleted.
func TestAQuarantinedMemberClusterKeepsItsWorks(t *testing.T) {
	f := newFixture(t)
	m, other := f.joined("confined"), f.joined("free")
	crp := f.pickN(2)
	f.untilOn(crp, byName(m, other)...)
	bearer := m.bearer(m.name)
	watched := f.spy(bearer, m.namespaceName(), workResource)
	f.eventually("the watch sees what is there", func() error { return watched.saw(crp.Name + "-work") })
	record := m.record()
	f.check(quarantine(f, &record, `"true"`))
	f.untilQuarantined(&record, "Quarantined")
	f.confined(bearer, m.namespaceName(), m.name)
	seen := len(watched.events())
	m.until("Healthy", metav1.ConditionTrue, "MemberClusterHealthy")
	f.change(crp, func() { crp.Spec.Policy.NumberOfClusters = new(int32(1)) })
	f.change(crp, func() { crp.Spec.Policy.NumberOfClusters = new(int32(3)) })
	f.untilSays(crp, "Scheduled", metav1.ConditionFalse, "")
	f.check(f.Delete(context.Background(), crp))
	f.eventually("the placement waits for the end", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		if !strings.Contains(crp.Status.Message, "muster quarantine "+m.name+" --undo") {
			return errors.New(crp.Status.Message)
		}
		return nil
	})
	if now := watched.events(); len(now) != seen {
		t.Errorf("the watch was sent %v", now[seen:])
	}
	f.check(quarantine(f, &record, "null"))
	f.untilQuarantined(&record, "")
	f.eventually("the placement is removed", func() error {
		return f.absent(f.Get(context.Background(), client.ObjectKeyFromObject(crp), crp))
	})
	f.untilAudited(naming.SystemNamespace, m.name, muster.AuditQuarantined, muster.AuditQuarantineEnded)
}

// TestWhoMayNotEndAQuarantine has a tenant with all rights on Clusters but the verb quarantine, the
// member itself, the holder of a token, and an administrator who replaces the Cluster.
func TestWhoMayNotEndAQuarantine(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	_, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "web"})
	record := f.clusterRecord(naming.Cluster("web"))
	f.untilReady(record.Name, "Ready")
	tenant, role := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusters"},
		Verbs: []string{"get", "create", "update", "patch", "delete", "cordon", "taint", "protect", "approve"},
	})
	refused := func(what string, err error) {
		t.Helper()
		if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "quarantine") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a tenant quarantines", quarantine(tenant, record, `"true"`))
	f.check(quarantine(f, record, `"true"`))
	f.untilQuarantined(record, "Quarantined")
	refused("a tenant ends it", quarantine(tenant, record, "null"))
	refused("a tenant sets another value", quarantine(tenant, record, `"false"`))
	named := record.DeepCopy()
	f.check(tenant.Patch(ctx, named, client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+fleet.AnnotationQuarantinedBy+`":"eve"}}}`))))
	if by := named.Annotations[fleet.AnnotationQuarantinedBy]; by == "eve" || by == "" {
		t.Errorf("it is quarantined by %q", by)
	}
	refused("a tenant says why", tenant.Patch(ctx, record.DeepCopy(), client.RawPatch(types.MergePatchType,
		[]byte(`{"metadata":{"annotations":{"`+fleet.AnnotationQuarantineReason+`":"nothing"}}}`))))
	refused("a tenant deletes the Cluster", tenant.Delete(ctx, record.DeepCopy()))
	made := f.clusterRecord("made")
	made.Annotations = map[string]string{fleet.AnnotationQuarantined: "true"}
	refused("a tenant creates a quarantined Cluster", tenant.Create(ctx, made))
	bearer, _ := m.credential()
	f.refused("the member ends it", quarantine(f.as(bearer), record, "null"))
	f.refused("a holder of a token ends it", quarantine(f.as(values["token"]), record, "null"))
	long := []byte(`{"metadata":{"annotations":{"` + fleet.AnnotationQuarantineReason + `":"` + strings.Repeat("x", 513) + `"}}}`)
	if err := f.Patch(ctx, record.DeepCopy(), client.RawPatch(types.MergePatchType, long)); !apierrors.IsInvalid(err) {
		t.Errorf("a long reason: %v", err)
	}
	f.check(cordon(f, record, `"true"`))
	f.check(cordon(f, record, "null")) // no other mark ends it
	f.check(revoke(f.Client, f.clusterRecord(record.Name), `"true"`))
	f.untilRevoked(record.Name)
	f.check(revoke(f.Client, f.clusterRecord(record.Name), "null"))
	f.untilQuarantined(record, "Quarantined")
	f.change(role, func() { role.Rules[0].Verbs = append(role.Rules[0].Verbs, "quarantine") })
	f.eventually("a tenant with the verb ends it", func() error { return quarantine(tenant, record, "null") })
}

// TestAQuarantineOfAnotherWorkspaceDeniesNoRequest: the tenant of another workspace gives a
// quarantined Cluster the key of an agent that is none of theirs.
func TestAQuarantineOfAnotherWorkspaceDeniesNoRequest(t *testing.T) {
	f := newFixture(t)
	key := f.keyOf("web")
	theirs := f.neighbour()
	forged := theirs.clusterRecord("forged")
	forged.Annotations = map[string]string{fleet.AnnotationAgentKey: credential.Fingerprint(key.Public()), fleet.AnnotationQuarantined: "true"}
	f.check(f.Create(context.Background(), forged))
	theirs.untilQuarantined(forged, "Quarantined")
	_, values := f.token("new-token", "")
	request := f.mustAsk(values, f.signed(key, values, "web", answerKey(t)))
	f.untilState(&request, fleet.RegistrationGranted, "Granted")
	_, values = theirs.token("new-token", "")
	request = theirs.mustAsk(values, theirs.signed(key, values, "other", answerKey(t)))
	theirs.untilState(&request, fleet.RegistrationDenied, "Quarantined")
}

// confinedOnes returns the identities of quarantined members, which have had deliveries.
func (f fixture) confinedOnes(values map[string]string) (who []identity) {
	f.t.Helper()
	f.join(values, map[string]any{"clientID": "confined"})
	legacy := f.legacyJoin(values, "confined-legacy")
	f.eventually("Rancher Fleet's agent beats", func() error { return legacy.beat(time.Now()) })
	any := f.register("confined")
	any.until("ReadyToJoin", metav1.ConditionTrue, "MemberClusterReadyToJoin")
	for id, kind := range map[string]string{"confined": confinedOne, "confined-legacy": confinedOld} {
		var cluster fleet.Cluster
		f.eventually("it has joined", func() error {
			err := f.get(&cluster, f.workspace, naming.Cluster(id))
			if err == nil && cluster.Status.Agent.LastSeen.IsZero() {
				err = errors.New("its agent has not been seen")
			}
			return err
		})
		place{f, cluster.Name, cluster.Status.Namespace}.deployment("app", there)
		f.check(quarantine(f, &cluster, `"true"`))
		f.untilQuarantined(&cluster, "Quarantined")
		who = append(who, account(kind, cluster.Status.Namespace, naming.MemberServiceAccount, cluster.Status.Namespace,
			cluster.Name, "$CLUSTER"))
	}
	record := any.record()
	f.check(quarantine(f, &record, `"true"`))
	f.untilQuarantined(&record, "Quarantined")
	return append(who, account(confinedAny, naming.MemberSystemNamespace, any.name, any.namespaceName()))
}
