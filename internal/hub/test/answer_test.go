package hub_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestAnswerIsTakenOffTheRequestAfterTheFirstBeat(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	f.join(values, map[string]any{"clientID": "answered"})
	f.untilReady(naming.Cluster("answered"), "Ready")
	f.eventually("the request has no answer any more", func() error {
		var list fleet.ClusterRegistrationList
		if err := f.List(context.Background(), &list, client.InNamespace(f.workspace)); err != nil {
			return err
		}
		if len(list.Items) != 1 {
			return fmt.Errorf("there are %d requests", len(list.Items))
		}
		if r := list.Items[0]; !r.Status.Granted || len(r.Status.Answer) > 0 {
			return fmt.Errorf("it is %s with an answer of %d bytes", r.Status.State, len(r.Status.Answer))
		}
		return nil
	})
}

// legacyAnswer waits until a legacy request is granted, and returns its answer.
func (f fixture) legacyAnswer(r *fleet.ClusterRegistration) *corev1.Secret {
	f.t.Helper()
	f.untilState(r, fleet.RegistrationGranted, "Granted")
	answer := &corev1.Secret{}
	f.check(f.get(answer, naming.RegistrationNamespace(naming.SystemNamespace), naming.CredentialSecret(r.Spec.ClientID, r.Spec.ClientRandom)))
	if _, names := f.answerRights(); !slices.Contains(names, answer.Name) {
		f.t.Errorf("readable are %q, without %s", names, answer.Name)
	}
	return answer
}

// TestTheRightToReadAnAnswerThatWasNeverWrittenGoesWithItsRequest writes what a hub has written
// that died before it wrote the answer to a legacy request, which was then deleted.
func TestTheRightToReadAnAnswerThatWasNeverWrittenGoesWithItsRequest(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	right := func(name, request string) []client.Object {
		meta := metav1.ObjectMeta{
			Namespace: naming.RegistrationNamespace(naming.SystemNamespace), Name: name + "-" + f.workspace,
			Labels: map[string]string{fleet.LabelManaged: "true"}, Annotations: map[string]string{"muster/registration": request},
		}
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name}
		return []client.Object{&rbacv1.Role{ObjectMeta: meta}, &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref}}
	}
	_, values := f.token("new-token", "")
	there := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "there", ClientRandom: "there"})
	kept, orphans := right("kept", client.ObjectKeyFromObject(&there).String()), right("orphan", f.workspace+"/gone")
	for _, o := range append(kept, orphans...) {
		f.check(f.Create(ctx, o))
		f.t.Cleanup(func() { _ = f.Delete(ctx, o) }) // the control plane may be gone
	}
	for _, o := range orphans {
		f.eventually(fmt.Sprintf("%T is gone", o), func() error { return gone(f.Get(ctx, client.ObjectKeyFromObject(o), o)) })
	}
	for _, o := range kept {
		f.check(f.Get(ctx, client.ObjectKeyFromObject(o), o))
	}
}

func TestAnswerOfALegacyAgentGoesWithItsClusterOrItsRequest(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	for name, remove := range map[string]func(*fleet.ClusterRegistration) client.Object{
		"its Cluster is deleted before its first beat": func(r *fleet.ClusterRegistration) client.Object {
			return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: r.Status.ClusterName}}
		},
		"its request is deleted by hand": func(r *fleet.ClusterRegistration) client.Object { return r },
	} {
		t.Run(name, func(t *testing.T) {
			f := f
			f.t = t
			random := naming.SafeConcat(f.workspace, name[:10])
			r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: random, ClientRandom: random})
			answer := f.legacyAnswer(&r)
			f.check(f.Delete(context.Background(), remove(&r)))
			f.eventually("the answer is gone", func() error { return gone(f.Get(context.Background(), client.ObjectKeyFromObject(answer), answer)) })
			f.eventually("nothing is readable", f.namesAre())
			f.eventually("the request is gone", func() error { return gone(f.Get(context.Background(), client.ObjectKeyFromObject(&r), &r)) })
		})
	}
}

// forbid lets the API server refuse what an expression does not allow, of a resource in some
// namespaces, until the returned function is called. The probe is refused when it has begun.
func (f fixture) forbid(operation admissionv1.OperationType, group, resource, allowed string, probe func() error,
	namespaces ...string) (permit func()) {
	f.t.Helper()
	name := "forbid-" + strings.ReplaceAll(resource, "/", "-") + "-" + f.workspace
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{operation},
					Rule:       admissionv1.Rule{APIGroups: []string{group}, APIVersions: []string{"*"}, Resources: []string{resource}},
				}}}},
			MatchConditions: []admissionv1.MatchCondition{{
				Name: "here", Expression: fmt.Sprintf("request.namespace in ['%s']", strings.Join(namespaces, "', '")),
			}},
			Validations: []admissionv1.Validation{{Expression: allowed, Message: "forbidden by the test"}},
		}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		}}
	f.check(f.Create(context.Background(), policy))
	f.check(f.Create(context.Background(), binding))
	permitted := false
	permit = func() {
		if !permitted {
			permitted = true
			f.check(f.Delete(context.Background(), binding))
			f.check(f.Delete(context.Background(), policy))
		}
	}
	f.t.Cleanup(permit)
	f.eventually("the API server refuses "+resource, func() error {
		if err := probe(); err == nil || !strings.Contains(err.Error(), "forbidden by the test") {
			return fmt.Errorf("it says %w", err)
		}
		return nil
	})
	return permit
}

func TestLegacyRequestSaysThatNobodyFillsItsToken(t *testing.T) {
	f := newAlone(t, "")
	f.shorten()
	_, values := f.token("new-token", "")
	namespace := naming.MemberNamespace(f.workspace, naming.Cluster("owed"))
	probe := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "probe"}, Type: "example.com/probe"}
	f.check(f.Create(context.Background(), probe))
	permit := f.forbid(admissionv1.Update, "", "secrets", "!has(object.data) || !('token' in object.data)", func() error {
		return f.Update(context.Background(),
			&corev1.Secret{ObjectMeta: probe.ObjectMeta, Type: probe.Type, Data: map[string][]byte{"token": nil}}, client.DryRunAll)
	}, namespace, f.workspace)
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "owed", ClientRandom: f.workspace})
	asked := time.Now()
	f.untilState(&r, fleet.RegistrationWaiting, "TokenNotIssued")
	if took := time.Since(asked); took > 30*time.Second {
		t.Errorf("it says so after %s", took)
	}
	if !strings.Contains(r.Status.Message, "kube-controller-manager") || !strings.Contains(r.Status.Message, namespace+"/") {
		t.Errorf("it says %q", r.Status.Message)
	}
	permit()
	f.check(f.Delete(context.Background(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.ServiceAccountToken(naming.MemberServiceAccount)},
	}))
	f.legacyAnswer(&r)
}

func TestRequestsAndTokensSayWhatTheHubCannotDo(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "probe"}}
	permit := f.forbid(admissionv1.Create, "fleet.cattle.io", "clusters", "false", func() error {
		return f.Create(context.Background(), cluster.DeepCopy(), client.DryRunAll)
	}, f.workspace)
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "refused", ClientRandom: f.workspace})
	f.untilState(&r, fleet.RegistrationWaiting, "Failed")
	if !strings.Contains(r.Status.Message, "creating Cluster "+f.workspace) || !strings.Contains(r.Status.Message, "forbidden by the test") {
		t.Errorf("it says %q", r.Status.Message)
	}
	said := r.ResourceVersion
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "unhappy"}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "probe"}}
	permitAccounts := f.forbid(admissionv1.Create, "", "serviceaccounts", "false", func() error {
		return f.Create(context.Background(), account.DeepCopy(), client.DryRunAll)
	}, f.workspace)
	f.check(f.Create(context.Background(), token))
	f.eventually("the token says what is wrong", func() error { return f.tokenSays(token, "Failed", "forbidden by the test") })
	if f.check(f.Get(context.Background(), client.ObjectKeyFromObject(&r), &r)); r.ResourceVersion != said {
		t.Errorf("the request was written again although nothing changed: %+v", r.Status)
	}
	permit()
	permitAccounts()
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	f.eventually("the token is ready", func() error { return f.tokenSays(token, "Ready", "") })
}

func (f fixture) tokenSays(token *fleet.ClusterRegistrationToken, reason, text string) error {
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(token), token))
	c := kube.FindCondition(token.Status.Conditions, fleet.ConditionReady)
	if c == nil || c.Reason != reason || !strings.Contains(c.Message, text) {
		return fmt.Errorf("conditions are %+v", token.Status.Conditions)
	}
	return nil
}

// TestDeletedSettingsAreSaidAloudAndGiveNoTokenAnEmptyURL changes the settings of the hub, so that
// no other test may run beside it.
func TestDeletedSettingsAreSaidAloudAndGiveNoTokenAnEmptyURL(t *testing.T) {
	f := newAlone(t, "")
	const url = "https://hub.example:6443"
	settings := f.configure(`{"apiServerURL":"` + url + `"}`)
	before, _ := f.token("before", "")
	f.eventually("the values have the URL", func() error {
		if got := f.values("before")["apiServerURL"]; got != url {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
	values := f.values("before")
	values["tokenName"] = "before"
	f.granted(values, "kept", nil)
	kept := naming.Cluster("kept")
	asked := func() (url string) {
		var report clusterv1beta1.InternalMemberCluster
		f.check(f.get(&report, naming.MemberNamespace(f.workspace, kept), kept))
		if report.Spec.Hub != nil {
			url = report.Spec.Hub.APIServerURL
		}
		return url
	}
	f.eventually("a member is told the URL", func() error {
		if got := asked(); got != url {
			return fmt.Errorf("it is told %q", got)
		}
		return nil
	})
	f.check(f.Delete(context.Background(), settings))
	missing := func(token *fleet.ClusterRegistrationToken) {
		t.Helper()
		f.eventually("token "+token.Name+" says that the settings are missing", func() error {
			return f.tokenSays(token, "SettingsMissing", naming.SystemNamespace+"/"+naming.HubConfigMap+" is gone")
		})
	}
	missing(&before)
	if got := f.values("before")["apiServerURL"]; got != url || before.Status.SecretName != "before" {
		t.Errorf("its values have the URL %q, its status the Secret %q", got, before.Status.SecretName)
	}
	f.eventually("an event says so", func() error {
		system := f
		system.workspace = naming.SystemNamespace
		return system.event("ConfigMissing", naming.HubConfigMap, "helm upgrade of the fleet chart")
	})
	f.restartHub()
	after := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "after"}}
	f.check(f.Create(context.Background(), after))
	missing(after)
	if err := f.get(&corev1.Secret{}, f.workspace, "after"); !apierrors.IsNotFound(err) {
		t.Errorf("the token has values: %v", errors.Join(err))
	}
	if got := f.values("before")["apiServerURL"]; got != url {
		t.Errorf("after the restart the values have the URL %q", got)
	}
	waits := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "waits", ClientRandom: "r"})
	f.untilState(&waits, fleet.RegistrationWaiting, "TokenInvalid")
	if !strings.Contains(waits.Status.Message, naming.HubConfigMap) {
		t.Errorf("the request says %q", waits.Status.Message)
	}
	// What a Cluster shows of the second change says that the hub has dealt with the first one whole.
	for _, change := range []struct{ annotation, reason string }{{`"Perhaps"`, "LeavePolicyInvalid"}, {"null", ""}} {
		f.check(merge(f, f.clusterRecord(kept), `{"metadata":{"annotations":{"muster/leave-policy":`+change.annotation+`}}}`))
		f.eventually("the condition Supported of the Cluster has the reason "+strconv.Quote(change.reason), func() error {
			var cluster fleet.Cluster
			if err := f.get(&cluster, f.workspace, kept); err != nil {
				return err
			}
			supported := kube.FindCondition(cluster.Status.Conditions, fleet.ConditionSupported)
			if said := supported != nil && supported.Reason == change.reason; said != (change.reason != "") {
				return fmt.Errorf("its condition is %v", supported)
			}
			return nil
		})
	}
	if got := asked(); got != url {
		t.Errorf("after the restart the member is told %q", got)
	}
	f.configure(`{"apiServerURL":"` + url + `"}`)
	f.untilState(&waits, fleet.RegistrationGranted, "Granted")
	f.eventually("the values of the new token have the URL", func() error {
		if err := f.get(&corev1.Secret{}, f.workspace, "after"); err != nil {
			return err
		}
		if got := f.values("after")["apiServerURL"]; got != url {
			return fmt.Errorf("it is %q", got)
		}
		return nil
	})
}
