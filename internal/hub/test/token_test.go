package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/naming"
)

func TestTokenHasTheValuesThatTheChartTakes(t *testing.T) {
	f := newFixture(t)
	token, values := f.token("new-token", "240h")
	bearer := values["token"]
	delete(values, "token")
	want := map[string]string{
		"apiServerCA": "", "apiServerURL": "", "clusterNamespace": f.workspace, "tokenName": "new-token",
		"systemRegistrationNamespace": "cattle-fleet-clusters-system",
	}
	if fmt.Sprint(values) != fmt.Sprint(want) {
		t.Errorf("values are %v, want %v", values, want)
	}
	claims, err := credential.ReadClaims(bearer)
	f.check(err)
	if claims.Account != naming.TokenServiceAccount("new-token", string(token.UID)) {
		t.Errorf("the credential is that of %s", claims.Subject)
	}
	if off := claims.Expires.Sub(token.CreationTimestamp.Add(240 * time.Hour)).Abs(); off > time.Minute {
		t.Errorf("the credential ends at %s, %s off the end of the token", claims.Expires, off)
	}
	if !token.Status.Expires.Equal(&metav1.Time{Time: token.CreationTimestamp.Add(240 * time.Hour)}) {
		t.Errorf("status.expires is %s", token.Status.Expires)
	}
}

func TestTokenWithoutAnEndHasACredentialThatLasts(t *testing.T) {
	f := newFixture(t)
	for name, ttl := range map[string]string{"null": "", "zero": "0s", "negative": "-1h"} {
		token, values := f.token(name, ttl)
		claims, err := credential.ReadClaims(values["token"])
		f.check(err)
		if claims.Life() < 10*365*24*time.Hour || token.Status.Expires != nil {
			t.Errorf("ttl %q: the credential lives %s, the token ends at %s", ttl, claims.Life(), token.Status.Expires)
		}
	}
}

func TestTokenThatIsMadeAnewUnderItsNameIsIssuedAtOnce(t *testing.T) {
	f := newFixture(t)
	before := ""
	for range 5 {
		token, values := f.token("again", "240h")
		if values["token"] == before {
			t.Error("the credential is that of the token before")
		}
		before = values["token"]
		f.check(f.Delete(context.Background(), &token)) // its Secret goes a moment later
	}
	if failed := logged.lines("writing Secret " + f.workspace + "/again"); failed != "" {
		t.Errorf("the hub could not write the Secret: %s", failed)
	}
}

func TestMalformedTTLIsRefusedWithASentence(t *testing.T) {
	f := newFixture(t)
	for _, ttl := range []string{"1d", "10", "abc", "", "-", "99999999h", "1h1d"} {
		token := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": fleet.GroupVersion.String(), "kind": "ClusterRegistrationToken",
			"metadata": map[string]any{"name": "bad", "namespace": f.workspace},
			"spec":     map[string]any{"ttl": ttl},
		}}
		err := f.Create(context.Background(), token)
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "spec.ttl") {
			t.Errorf("ttl %q: got %v, want it refused as invalid", ttl, err)
		}
	}
	for _, ttl := range []string{"0", "240h", "-5m", "1h30m", "2562047h", "1.5h", "10µs"} {
		token := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": fleet.GroupVersion.String(), "kind": "ClusterRegistrationToken",
			"metadata": map[string]any{"generateName": "good-", "namespace": f.workspace},
			"spec":     map[string]any{"ttl": ttl},
		}}
		if err := f.Create(context.Background(), token); err != nil {
			t.Errorf("ttl %q: %v", ttl, err)
		}
	}
	f.token("after", "") // the hub still works
}

func TestExpiredTokenSaysSoAndRegistersNobodyWhileItsClustersLiveOn(t *testing.T) {
	f := newFixture(t)
	token, values := f.token("short", "60s")
	key := answerKey(t)
	r := f.mustAsk(values, fleet.ClusterRegistrationSpec{ClientID: "in-time", AnswerKey: key.Public()})
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	answer, err := key.Open(string(r.UID), r.Status.Answer)
	f.check(err)
	f.eventually("the token says that it has expired", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token); err != nil {
			return err
		}
		if len(token.Status.Conditions) != 1 || token.Status.Conditions[0].Reason != "Expired" {
			return fmt.Errorf("conditions are %+v", token.Status.Conditions)
		}
		return nil
	})
	f.eventually("its credential is refused", func() error {
		if _, err := f.ask(values, fleet.ClusterRegistrationSpec{ClientID: "late"}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("asking: %v", err)
		}
		return nil
	})
	if err := f.get(&corev1.Secret{}, f.workspace, "short"); !apierrors.IsNotFound(err) {
		t.Errorf("the values are still there: %v", err)
	}
	f.check(beat(f.as(answer.Token), answer))
}

func TestDeletedTokenTakesItsCredentialWithItAndLeavesItsClusters(t *testing.T) {
	f := newFixture(t)
	token, values := f.token("new-token", "")
	m := f.join(values, map[string]any{"clientID": "registered"})
	cluster := f.untilReady(naming.Cluster("registered"), "Ready")
	f.check(f.Delete(context.Background(), &token))
	f.eventually("its credential is refused", func() error {
		if _, err := f.ask(values, fleet.ClusterRegistrationSpec{ClientID: "late"}); !apierrors.IsUnauthorized(err) {
			return fmt.Errorf("asking: %v", err)
		}
		return nil
	})
	bearer, namespace := m.credential()
	f.check(beat(f.as(bearer), credential.Answer{DeploymentNamespace: namespace}))
	f.untilReady(cluster.Name, "Ready")
}

func TestRequestOfATokenThatIsGoneIsDenied(t *testing.T) {
	f := newFixture(t)
	// The policy of the chart refuses a token's own account that names another one; a token may go
	// while its request is on its way.
	r := fleet.ClusterRegistration{
		ObjectMeta: metav1.ObjectMeta{
			GenerateName: "request-", Namespace: f.workspace, Labels: map[string]string{fleet.LabelRegistrationToken: "never-was"},
		},
		Spec: fleet.ClusterRegistrationSpec{ClientID: "a", AnswerKey: answerKey(t).Public()},
	}
	f.check(f.Create(context.Background(), &r))
	f.untilState(&r, fleet.RegistrationDenied, "TokenNotFound")
}

func TestSecretOfSomebodyElseIsNotOverwritten(t *testing.T) {
	f := newFixture(t)
	mine := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: f.workspace}, StringData: map[string]string{"a": "b"}}
	f.check(f.Create(context.Background(), mine))
	token := fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Name: "mine", Namespace: f.workspace}}
	f.check(f.Create(context.Background(), &token))
	f.eventually("the token says so", func() error {
		if err := f.Get(context.Background(), client.ObjectKeyFromObject(&token), &token); err != nil {
			return err
		}
		if len(token.Status.Conditions) != 1 || token.Status.Conditions[0].Reason != "SecretNameTaken" {
			return fmt.Errorf("conditions are %+v", token.Status.Conditions)
		}
		return nil
	})
	f.check(f.Get(context.Background(), client.ObjectKeyFromObject(mine), mine))
	if string(mine.Data["a"]) != "b" || len(mine.Data) != 1 {
		t.Errorf("the Secret was changed: %v", mine.Data)
	}
}

func TestDeletedObjectsOfATokenAreMadeAnew(t *testing.T) {
	f := newFixture(t)
	token, values := f.token("new-token", "240h")
	account := &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: naming.TokenServiceAccount("new-token", string(token.UID))},
	}
	f.check(f.Delete(context.Background(), account))
	f.eventually("the values hold a credential of the new account", func() error {
		fresh := f.values("new-token")
		if fresh["token"] == values["token"] {
			return fmt.Errorf("it is the old one")
		}
		_, err := f.ask(fresh, fleet.ClusterRegistrationSpec{ClientID: "healed"})
		return err
	})
	f.check(f.Delete(context.Background(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: f.workspace, Name: "new-token"}}))
	f.eventually("the values are back", func() error { return f.get(&corev1.Secret{}, f.workspace, "new-token") })
}
