package crash

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
	"github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
	"github.com/muster-fleet/muster/internal/testkube"
)

// scenario is something that users do with a fleet.
type scenario struct {
	name string
	// programs are those that make calls in it; an agent beats meanwhile.
	programs []string
	// prepare is not disturbed; act is, and returns when users have what they wanted.
	prepare, act func(*run)
}

var scenarios = []scenario{
	{"join", []string{hub, agent}, func(*run) {}, (*run).joinByToken},
	{"membercluster", []string{hub, agent}, (*run).identity, (*run).joinAsMemberCluster},
	{"rollout", []string{hub, deployer}, (*run).clusterThatDelivers, (*run).rollOut},
	{"move", []string{hub, deployer}, (*run).clusterWithBundle, (*run).move},
	{"drift", []string{deployer}, (*run).clusterWithCorrection, (*run).drift},
	{"revoke", []string{hub, agent, deployer}, (*run).clusterWithBundle, (*run).revokeAndReturn},
	{"repository", []string{hub, gitops, deployer}, (*run).clusterWithGitOps, (*run).follow},
	{"repository-leave", []string{hub, deployer}, (*run).clusterThatFollows, (*run).unfollow},
	{"placement", []string{hub, deployer}, (*run).memberWithShop, (*run).place},
	{"staged", []string{hub, deployer}, (*run).memberWithShop, (*run).rollOutInStages},
	{"leave", []string{hub, agent, deployer}, (*run).memberWithPlacement, (*run).leave},
	{"cluster-leave", []string{hub, agent, deployer}, (*run).clusterWithBundle, (*run).leaveCluster},
	{"uninstall", []string{hub, agent}, (*run).importedCluster, (*run).leaveWithAgent},
	{"import", []string{hub, agent}, (*run).clusterToImport, (*run).importCluster},
	{"renewal", []string{hub, agent}, (*run).clusterWithShortCredential, (*run).renew},
	{"reconnect", []string{hub, agent}, (*run).clusterThatWasAway, (*run).comeBack},
	{"upgrade", []string{hub, agent, deployer}, (*run).importedCluster, (*run).upgrade},
	{"ca", []string{hub, agent}, (*run).clusterAtAnAddress, (*run).rotate},
	{"restore", []string{restore, restored, agent}, (*run).lostHub, (*run).restoreHub},
	{"standby", []string{hub, agent}, (*run).memberOfLostHub, (*run).comeToStandby},
}

// joinByToken makes a token, installs an agent with its values and waits for the member.
func (in *run) joinByToken() { in.joinWith("--delivery=false") }

func (in *run) joinWith(flags ...string) {
	in.t.Helper()
	in.create(in.Client, &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "token"}})
	in.giveToken(in.hubFront)
	in.create(in.on, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in.agentNamespace(), Name: naming.AgentConfigMap},
		Data: map[string]string{"config": fmt.Sprintf(`{"clientID":%q}`, in.id)}})
	in.startAgent(flags...)
	in.untilTrue(fleet.ConditionReady)
}

// giveToken gives the agent the values of the token, with the address of the hub.
func (in *run) giveToken(front testkube.Cluster) {
	in.t.Helper()
	values := map[string]string{}
	in.eventually("the token has its values", func() error {
		var secret corev1.Secret
		if err := in.get(&secret, in.id, "token"); err != nil {
			return err
		}
		return yaml.Unmarshal(secret.Data["values"], &values)
	})
	data := map[string]string{"apiServerURL": front.Config.Host, "apiServerCA": string(front.Config.CAData)}
	for _, key := range []string{"token", "tokenName", "clusterNamespace", "systemRegistrationNamespace"} {
		data[key] = values[key]
	}
	in.create(in.on, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: in.agentNamespace(), Name: naming.AgentBootstrapSecret}, StringData: data,
	})
}

// cluster names the Cluster of the run.
func (in *run) cluster() *fleet.Cluster {
	return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: naming.Cluster(in.id)}}
}

// untilTrue waits until a condition of the Cluster is true, and its message has all parts.
func (in *run) untilTrue(condition string, parts ...string) {
	in.t.Helper()
	in.eventually("the Cluster is "+condition, func() error {
		cluster := in.cluster()
		if err := in.Get(context.Background(), client.ObjectKeyFromObject(cluster), cluster); err != nil {
			return err
		}
		c := kube.FindCondition(cluster.Status.Conditions, condition)
		if c == nil || c.Status != corev1.ConditionTrue || slices.ContainsFunc(parts, func(part string) bool {
			return !strings.Contains(c.Message, part)
		}) {
			return fmt.Errorf("its condition is %+v", c)
		}
		return nil
	})
}

// clusterJoined joins by token, to the end, with an agent that starts the deployer.
func (in *run) clusterJoined() {
	in.t.Helper()
	in.joinWith()
	in.eventually("the answer is withdrawn", func() error {
		var bindings rbacv1.RoleBindingList
		if err := in.List(context.Background(), &bindings, client.InNamespace(in.id)); err != nil {
			return err
		}
		for _, b := range bindings.Items {
			if owner := metav1.GetControllerOf(&b); owner != nil && owner.Kind == "ClusterRegistration" {
				return fmt.Errorf("RoleBinding %s is still there", b.Name)
			}
		}
		return nil
	})
}

// identity makes the account of a MemberCluster.
func (in *run) identity() {
	in.create(in.Client, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: naming.MemberSystemNamespace, Name: in.id}})
}

// joinAsMemberCluster registers a member by name and starts its agent.
func (in *run) joinAsMemberCluster() {
	in.t.Helper()
	in.create(in.Client, &clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: in.id}, Spec: clusterv1beta1.MemberClusterSpec{
		Identity:               rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: in.id, Namespace: naming.MemberSystemNamespace},
		HeartbeatPeriodSeconds: 60,
	}})
	in.startMemberAgent()
	in.untilMemberHealthy()
}

// untilMemberHealthy waits until the MemberCluster has joined with a credential of the hub.
func (in *run) untilMemberHealthy() {
	in.t.Helper()
	in.eventually("the member is healthy", func() error {
		var mc clusterv1beta1.MemberCluster
		if err := in.get(&mc, "", in.id); err != nil {
			return err
		}
		for _, condition := range []string{
			clusterv1beta1.ConditionReadyToJoin, clusterv1beta1.ConditionJoined, clusterv1beta1.ConditionHealthy,
			clusterv1beta1.ConditionCredentialExchanged,
		} {
			if c := meta.FindStatusCondition(mc.Status.Conditions, condition); c == nil || c.Status != metav1.ConditionTrue {
				return fmt.Errorf("its condition %s is %+v", condition, c)
			}
		}
		return nil
	})
}

// clusterThatDelivers joins, by token, an agent that starts the deployer and is not managed. The
// cluster runs no pods, so the agent could not replace itself.
func (in *run) clusterThatDelivers() {
	in.t.Helper()
	cluster := in.cluster()
	cluster.Labels, cluster.Spec.ClientID = map[string]string{fleet.LabelNonManagedAgent: "true"}, in.id
	in.create(in.Client, cluster)
	in.clusterJoined()
}

// rollOut delivers a Bundle and then changes its options.
func (in *run) rollOut() {
	in.t.Helper()
	manifest := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: delivered}\ndata: {of: " + in.id + "}\n"
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: in.id, Name: "web"}}
	bundle.Spec.DefaultNamespace = "web-" + in.id
	bundle.Spec.Resources = []fleet.BundleResource{{Name: "delivered.yaml", Content: manifest}}
	bundle.Spec.Targets = []fleet.BundleTarget{{ClusterSelector: &metav1.LabelSelector{}}}
	in.create(in.Client, bundle)
	first := in.untilDelivered(bundle, "")
	in.change(bundle, func() {
		bundle.Spec.Helm = &fleet.HelmOptions{TimeoutSeconds: 77, Values: &runtime.RawExtension{Raw: []byte(`{"a":"b"}`)}}
	})
	in.untilDelivered(bundle, first)
}

// untilDelivered waits until a Bundle is delivered with another deployment ID than
// before, and returns that.
func (in *run) untilDelivered(bundle *fleet.Bundle, before string) string {
	in.t.Helper()
	var d fleet.BundleDeployment
	in.eventually("the Bundle is delivered", func() error {
		if err := in.get(&d, naming.MemberNamespace(in.id, naming.Cluster(in.id)), bundle.Name); err != nil {
			return err
		}
		if state := delivery.StateOf(&d); d.Spec.DeploymentID == before || state != fleet.StateReady {
			return fmt.Errorf("deployment %s is %s: %+v", d.Spec.DeploymentID, state, d.Status)
		}
		if err := in.Get(context.Background(), client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		if c := kube.FindCondition(bundle.Status.Conditions, fleet.ConditionReady); c == nil || c.Status != corev1.ConditionTrue {
			return fmt.Errorf("the Bundle's condition is %+v", c)
		}
		return nil
	})
	return d.Spec.DeploymentID
}

// memberWithShop joins a MemberCluster, whose agent starts the deployer, and makes
// something to place.
func (in *run) memberWithShop() {
	in.t.Helper()
	in.identity()
	in.joinAsMemberCluster()
	in.create(in.Client, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: in.shop()}})
	in.create(in.Client, in.settings())
}

func (in *run) shop() string { return "shop-" + in.id }

func (in *run) settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: in.shop(), Name: "settings"}, Data: map[string]string{"price": "1"}}
}

// place places a namespace on the member and then changes what is in it.
func (in *run) place() {
	in.t.Helper()
	crp := &placement.ClusterResourcePlacement{ObjectMeta: metav1.ObjectMeta{Name: in.id}}
	crp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: in.shop()}}
	crp.Spec.Policy = &placement.PlacementPolicy{PlacementType: "PickFixed", ClusterNames: []string{in.id}}
	in.create(in.Client, crp)
	in.untilPlaced(crp, "1")
	settings := in.settings()
	in.change(settings, func() { settings.Data["price"] = "2" })
	in.untilPlaced(crp, "2")
}

// untilPlaced waits until the member has the price and the placement says that all is well.
func (in *run) untilPlaced(crp *placement.ClusterResourcePlacement, price string) {
	in.t.Helper()
	in.eventually("the placement is available with price "+price, func() error {
		var got corev1.ConfigMap
		if err := in.on.Get(context.Background(), client.ObjectKeyFromObject(in.settings()), &got); err != nil || got.Data["price"] != price {
			return fmt.Errorf("the member has %v: %w", got.Data, err)
		}
		if err := in.Get(context.Background(), client.ObjectKeyFromObject(crp), crp); err != nil {
			return err
		}
		c := meta.FindStatusCondition(crp.Status.Conditions, "ClusterResourcePlacementAvailable")
		if c == nil || c.Status != metav1.ConditionTrue || c.ObservedGeneration != crp.Generation {
			return fmt.Errorf("its condition is %+v", c)
		}
		return nil
	})
}

// rollOutInStages brings the member a version by a run that waits for an approval, and then
// another.
func (in *run) rollOutInStages() {
	in.t.Helper()
	ctx, name := context.Background(), metav1.ObjectMeta{Name: in.id}
	crp := &placement.ClusterResourcePlacement{ObjectMeta: name}
	crp.Spec.ResourceSelectors = []placement.ResourceSelector{{Version: "v1", Kind: "Namespace", Name: in.shop()}}
	crp.Spec.Policy = &placement.PlacementPolicy{PlacementType: "PickFixed", ClusterNames: []string{in.id}}
	crp.Spec.Strategy.Type = placement.RolloutExternal
	in.create(in.Client, crp)
	strategy := &placement.ClusterStagedUpdateStrategy{ObjectMeta: name}
	strategy.Spec.Stages = []placement.StageConfig{{
		Name: "all", LabelSelector: &metav1.LabelSelector{}, BeforeStageTasks: []placement.StageTask{{Type: placement.TaskApproval}},
	}}
	in.create(in.Client, strategy)
	for i, price := range []string{"1", "2"} {
		settings := in.settings()
		in.change(settings, func() { settings.Data["price"] = price })
		in.eventually("the version is kept", func() error {
			if err := in.Get(ctx, client.ObjectKeyFromObject(crp), crp); err != nil {
				return err
			}
			if len(crp.Status.ResourceIndexes) <= i {
				return fmt.Errorf("kept are %v", crp.Status.ResourceIndexes)
			}
			return nil
		})
		of := &placement.ClusterStagedUpdateRun{ObjectMeta: metav1.ObjectMeta{Name: in.id + "-" + price}}
		of.Spec = placement.UpdateRunSpec{PlacementName: in.id, StagedUpdateStrategyName: in.id, State: placement.StateRun}
		in.create(in.Client, of)
		request := &placement.ClusterApprovalRequest{ObjectMeta: metav1.ObjectMeta{Name: of.Name + "-before-all"}}
		in.eventually("it is approved", func() error {
			if err := in.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
				return err
			}
			meta.SetStatusCondition(&request.Status.Conditions, metav1.Condition{
				Type: placement.ConditionApproved, Status: metav1.ConditionTrue, Reason: "Approved", ObservedGeneration: request.Generation,
			})
			return in.Client.Status().Update(ctx, request)
		})
		in.eventually("the run has succeeded", func() error {
			if err := in.Get(ctx, client.ObjectKeyFromObject(of), of); err != nil {
				return err
			}
			if !meta.IsStatusConditionTrue(of.Status.Conditions, placement.ConditionSucceeded) {
				return fmt.Errorf("it says %q", of.Status.Message)
			}
			return nil
		})
		in.untilPlaced(crp, price)
	}
}

func (in *run) memberWithPlacement() {
	in.t.Helper()
	in.memberWithShop()
	in.place()
}

// leave deletes the record of a member with something placed on it.
func (in *run) leave() {
	in.t.Helper()
	in.untilGone(&clusterv1beta1.MemberCluster{ObjectMeta: metav1.ObjectMeta{Name: in.id}}, naming.MemberClusterNamespace(in.id))
}

func (in *run) clusterWithBundle() {
	in.t.Helper()
	in.clusterThatDelivers()
	in.rollOut()
}

// leaveCluster deletes a Cluster that has a Bundle, with the policy to take it along.
func (in *run) leaveCluster() {
	in.t.Helper()
	cluster := in.cluster()
	in.change(cluster, func() {
		metav1.SetMetaDataAnnotation(&cluster.ObjectMeta, clusterv1beta1.AnnotationLeavePolicy, "Delete")
	})
	in.untilGone(cluster, naming.MemberNamespace(in.id, cluster.Name))
}

// untilGone deletes a record and waits until it and the member namespace are gone.
func (in *run) untilGone(record client.Object, namespace string) {
	in.t.Helper()
	in.check(in.Delete(context.Background(), record))
	in.eventually("the record and its namespace are gone", func() error {
		for _, o := range []client.Object{record, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}} {
			if err := in.Get(context.Background(), client.ObjectKeyFromObject(o), o); !apierrors.IsNotFound(err) {
				return fmt.Errorf("%T is still there: %w", o, err)
			}
		}
		return nil
	})
}
