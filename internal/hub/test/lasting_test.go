package hub_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// legacyToken registers a legacy agent and returns the claims of its credential, and a client
// that has only that.
func (f fixture) legacyToken(values map[string]string, clientID string) (credential.Claims, client.Client) {
	f.t.Helper()
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: clientID, ClientRandom: f.workspace + clientID})
	answer := f.legacyAnswer(&r)
	claims, err := credential.ReadClaims(string(answer.Data["token"]))
	f.check(err)
	return claims, f.as(string(answer.Data["token"]))
}

// accepted asks the API server for something that every member may read.
func accepted(who client.Client, namespace string) error {
	return who.List(context.Background(), &fleet.BundleDeploymentList{}, client.InNamespace(namespace))
}

func (f fixture) rejected(what string, who client.Client, namespace string) {
	f.t.Helper()
	f.eventually(what, func() error {
		if err := accepted(who, namespace); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("the API server says %v", err)
		}
		return nil
	})
}

// lasts says what is wrong with a token that is to last and to end with a Secret
// that holds nothing.
func (f fixture) lasts(claims credential.Claims, namespace, account string) {
	f.t.Helper()
	var bound corev1.Secret
	f.check(f.get(&bound, namespace, naming.LastingToken(account)))
	if claims.Secret != bound.Name || claims.SecretUID != string(bound.UID) || claims.Life() < 10*365*24*time.Hour {
		f.t.Errorf("the token lives %s and is bound to Secret %q (%s)", claims.Life(), claims.Secret, claims.SecretUID)
	}
	if len(bound.Data) > 0 || bound.Type != fleet.SecretTypeLastingToken {
		f.t.Errorf("Secret %s of type %s holds %d values", bound.Name, bound.Type, len(bound.Data))
	}
	if err := f.get(&corev1.Secret{}, namespace, naming.ServiceAccountToken(account)); !apierrors.IsNotFound(err) {
		f.t.Errorf("kube-controller-manager was asked, too: %v", err)
	}
}

func TestTheCredentialOfALegacyAgentEndsWithItsSecretOrItsAccount(t *testing.T) {
	f := newFixture(t)
	_, values := f.token("new-token", "")
	for clientID, end := range map[string]func(namespace string) client.Object{
		"secret": func(namespace string) client.Object {
			return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.LastingToken(naming.MemberServiceAccount)}}
		},
		"account": func(namespace string) client.Object {
			return &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: naming.MemberServiceAccount}}
		},
	} {
		claims, agent := f.legacyToken(values, clientID)
		f.lasts(claims, claims.Namespace, naming.MemberServiceAccount)
		f.eventually("the credential is accepted", func() error { return accepted(agent, claims.Namespace) })
		f.check(f.Delete(context.Background(), end(claims.Namespace)))
		f.rejected("without its "+clientID+" the credential is refused", agent, claims.Namespace)
	}
}

func TestTheCredentialOfALegacyAgentEndsWhenAnotherRegistersOrTheClusterIsRevoked(t *testing.T) {
	f := newFixture(t)
	values := f.stampingToken("for-web", fleet.ClusterRegistrationTokenSpec{ClusterName: "web"})
	first, before := f.legacyToken(values, "web")
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "web", ClientRandom: f.workspace + "again"})
	answer := f.legacyAnswer(&r)
	f.rejected("the credential before is refused", before, first.Namespace)
	second, err := credential.ReadClaims(string(answer.Data["token"]))
	f.check(err)
	f.lasts(second, second.Namespace, naming.MemberServiceAccount)
	if second.SecretUID == first.SecretUID {
		t.Errorf("the credential after is bound to the Secret of the one before")
	}
	now := f.as(string(answer.Data["token"]))
	f.eventually("the credential after is accepted", func() error { return accepted(now, second.Namespace) })
	f.check(revoke(f, f.clusterRecord("web"), `"true"`))
	f.rejected("that of a revoked Cluster is refused", now, second.Namespace)
}

// TestALegacyAgentThatIsStartedAgainWithinASecondIsAnswered has agents that do not say when they
// ask do so twice, as if they were killed in between.
func TestALegacyAgentThatIsStartedAgainWithinASecondIsAnswered(t *testing.T) {
	f := newFixture(t)
	for n, tries := 0, 0; n < 5 && tries < 20; tries++ { // where the two take longer than a second nothing is in question
		clientID := fmt.Sprint("web-", tries)
		values := f.stampingToken("for-"+clientID, fleet.ClusterRegistrationTokenSpec{ClusterName: clientID})
		ask := func(random string) fleet.ClusterRegistration {
			return f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: clientID, ClientRandom: f.workspace + clientID + random})
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second)))
		before, after := ask("a"), ask("b")
		if after.CreationTimestamp.Equal(&before.CreationTimestamp) {
			n++
		}
		f.legacyAnswer(&after)
		f.eventually("the request before is over", func() error {
			if err := f.Get(context.Background(), client.ObjectKeyFromObject(&before), &before); err == nil &&
				before.Status.State != fleet.RegistrationDenied {
				return fmt.Errorf("it is %s", before.Status.State)
			}
			return nil
		})
	}
}

func TestALastingRegistrationTokenEndsWithItsSecretAndIsIssuedAnew(t *testing.T) {
	f := newFixture(t)
	token, values := f.token("new-token", "")
	claims, err := credential.ReadClaims(values["token"])
	f.check(err)
	f.lasts(claims, f.workspace, naming.TokenServiceAccount(token.Name, string(token.UID)))
	f.check(f.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: claims.Secret}}))
	f.eventually("the credential is refused", func() error {
		if _, err := f.ask(values, fleet.ClusterRegistrationSpec{ClientID: "late"}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("asking: %v", err)
		}
		return nil
	})
	f.eventually("the values hold another one", func() error {
		fresh := f.values(token.Name)
		if fresh["token"] == values["token"] {
			return fmt.Errorf("it is the old one")
		}
		_, err := f.ask(fresh, fleet.ClusterRegistrationSpec{ClientID: "healed"})
		return err
	})
}

// TestATenantGetsNoTokenByASecretThatTokensAreBoundTo plays one with all rights on
// Secrets in the workspace.
func TestATenantGetsNoTokenByASecretThatTokensAreBoundTo(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	token, values := f.token("new-token", "")
	claims, err := credential.ReadClaims(values["token"])
	f.check(err)
	tenant, _ := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"*"},
	})
	squatted := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: claims.Secret}, Type: fleet.SecretTypeLastingToken}
	f.eventually("the tenant may write Secrets", func() error {
		return client.IgnoreNotFound(tenant.Get(ctx, client.ObjectKeyFromObject(squatted), &corev1.Secret{}))
	})
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: claims.Account}}
	if _, err := kube.RequestBoundToken(ctx, tenant.SubResource("token"), account, squatted, time.Hour); !apierrors.IsForbidden(err) {
		t.Errorf("asking for a token himself: %v", err)
	}
	// A tenant's Secret in the place of the hub's gets no token and no binding, and the status names
	// it.
	f.eventually("the tenant's Secret is in the place of the hub's", func() error {
		if err := tenant.Delete(ctx, squatted.DeepCopy()); client.IgnoreNotFound(err) != nil {
			return err
		}
		return tenant.Create(ctx, squatted.DeepCopy())
	})
	f.eventually("the token says so", func() error { return f.tokenSays(&token, "Failed", claims.Secret+" exists and is not the hub's") })
	if f.check(f.Get(ctx, client.ObjectKeyFromObject(squatted), squatted)); len(squatted.Data) > 0 {
		t.Errorf("the tenant's Secret holds %d values", len(squatted.Data))
	}
	f.check(tenant.Delete(ctx, squatted))
}

// shorten has the API server grant no token a longer life than a day,
// as --service-account-max-token-expiration does, until the returned function is called.
func (f fixture) shorten() func() {
	f.t.Helper()
	ctx, name, never := context.Background(), "shorten-tokens", admissionv1.NeverReinvocationPolicy
	policy := &admissionv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionv1.RuleWithOperations{
				Operations: []admissionv1.OperationType{admissionv1.Create},
				Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"serviceaccounts/token"}},
			}}}},
		MatchConditions:    []admissionv1.MatchCondition{{Name: "longer", Expression: "object.spec.expirationSeconds > 86400"}},
		ReinvocationPolicy: never,
		Mutations: []admissionv1.Mutation{{PatchType: admissionv1.PatchTypeJSONPatch, JSONPatch: &admissionv1.JSONPatch{
			Expression: `[JSONPatch{op: "replace", path: "/spec/expirationSeconds", value: 86400}]`,
		}}},
	}}
	binding := &admissionv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	f.check(f.Create(ctx, policy))
	f.check(f.Create(ctx, binding))
	end := func() {
		f.check(client.IgnoreNotFound(f.Delete(ctx, binding)))
		f.check(client.IgnoreNotFound(f.Delete(ctx, policy)))
	}
	f.t.Cleanup(end)
	f.grants(func(life time.Duration) bool { return life <= 24*time.Hour })
	return func() {
		end()
		f.grants(func(life time.Duration) bool { return life > 24*time.Hour })
	}
}

// grants waits until the lifetime that the API server grants satisfies asked.
func (f fixture) grants(asked func(time.Duration) bool) {
	f.t.Helper()
	ctx, account := context.Background(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "probe"}}
	f.check(client.IgnoreAlreadyExists(f.Create(ctx, account.DeepCopy())))
	f.eventually("the API server grants tokens as the test wants", func() error {
		bearer, err := kube.RequestToken(ctx, f.SubResource("token"), account, 240*time.Hour)
		if err != nil {
			return err
		}
		if life := credential.ClaimsOf(bearer).Life(); !asked(life) {
			return fmt.Errorf("it grants %s", life)
		}
		return nil
	})
}

// TestWhereNoTokenLastsKubernetesIssuesItAndItStays goes on after an upgrade, as what a hub of an
// earlier version has issued does.
func TestWhereNoTokenLastsKubernetesIssuesItAndItStays(t *testing.T) {
	f := newAlone(t, "")
	end := f.shorten()
	token, values := f.token("new-token", "")
	account := naming.TokenServiceAccount(token.Name, string(token.UID))
	issued := credential.ClaimsOf(values["token"])
	joined, agent := f.legacyToken(values, "limited")
	for namespace, row := range map[string]struct {
		claims  credential.Claims
		account string
	}{f.workspace: {issued, account}, joined.Namespace: {joined, naming.MemberServiceAccount}} {
		if !row.claims.Expires.IsZero() || row.claims.Secret != naming.ServiceAccountToken(row.account) {
			t.Errorf("the token of %s/%s ends at %s and with Secret %q", namespace, row.account, row.claims.Expires, row.claims.Secret)
		}
		if err := f.get(&corev1.Secret{}, namespace, naming.LastingToken(row.account)); !apierrors.IsNotFound(err) {
			t.Errorf("the Secret of the token that was too short is there: %v", err)
		}
	}
	end()
	f.restartHub()
	later, _ := f.legacyToken(values, "unlimited")
	f.lasts(later, later.Namespace, naming.MemberServiceAccount)
	other, _ := f.token("other", "")
	f.lasts(credential.ClaimsOf(f.values("other")["token"]), f.workspace, naming.TokenServiceAccount("other", string(other.UID)))
	if f.values(token.Name)["token"] != values["token"] {
		t.Error("the token that kube-controller-manager has issued was replaced")
	}
	f.check(accepted(agent, joined.Namespace))
}
