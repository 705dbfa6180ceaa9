package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/hub/joining/admission"
	"github.com/muster-fleet/muster/internal/kube"
	"github.com/muster-fleet/muster/internal/naming"
)

// attributed returns an error unless a request's condition Attributed is False for the reason. With
// an empty reason, the request must not have the condition.
func attributed(r *fleet.ClusterRegistration, reason string) error {
	if is := kube.ReasonOf(r.Status.Conditions, fleet.ConditionAttributed); is != reason {
		return fmt.Errorf("the reason of its condition Attributed is %q, want %q: %+v", is, reason, r.Status.Conditions)
	}
	return nil
}

// TestATenantCannotMakeARequestInTheNameOfSomebodyElse plays a tenant who may create and edit
// requests, but not approve them.
func TestATenantCannotMakeARequestInTheNameOfSomebodyElse(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	values := f.stampingToken("open", fleet.ClusterRegistrationTokenSpec{})
	f.stampingToken("careful", fleet.ClusterRegistrationTokenSpec{Approval: fleet.ApprovalManual})
	var open fleet.ClusterRegistrationToken
	f.check(f.get(&open, f.workspace, "open"))
	account := "system:serviceaccount:" + f.workspace + ":" + naming.TokenServiceAccount("open", string(open.UID))
	tenant, _ := f.userWith(f.workspace, "tenant", rbacv1.PolicyRule{
		APIGroups: []string{fleet.GroupVersion.Group}, Resources: []string{"clusterregistrations"},
		Verbs: []string{"get", "create", "update", "patch"}})
	made := func(change func(*fleet.ClusterRegistration)) (*fleet.ClusterRegistration, error) {
		r := &fleet.ClusterRegistration{
			ObjectMeta: metav1.ObjectMeta{GenerateName: "request-", Namespace: f.workspace}, Spec: fleet.ClusterRegistrationSpec{
				ClientID: "a", ClientRandom: "r",
			},
		}
		change(r)
		return r, tenant.Create(ctx, r)
	}
	var own *fleet.ClusterRegistration
	f.eventually("his own request is stamped with his name", func() (err error) {
		own, err = made(func(*fleet.ClusterRegistration) {})
		if err == nil && own.Annotations[fleet.AnnotationRequester] != "system:serviceaccount:"+f.workspace+":tenant" {
			t.Errorf("it is attributed to %q", own.Annotations[fleet.AnnotationRequester])
		}
		return err
	})
	if _, err := made(func(r *fleet.ClusterRegistration) {
		r.Annotations = map[string]string{fleet.AnnotationRequester: account}
	}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "another user than the one that asks") {
		t.Errorf("in the name of a token's account: %v", err)
	}
	if _, err := made(func(r *fleet.ClusterRegistration) {
		r.Labels = map[string]string{fleet.LabelRegistrationToken: "open"}
	}); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "not the one that asks") {
		t.Errorf("in the name of a token: %v", err)
	}
	for patch, says := range map[string]string{
		fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationRequester,
			account): "muster/requester says who made the request, which does not change",
		fmt.Sprintf(`{"metadata":{"annotations":{%q:null}}}`,
			fleet.AnnotationRequester): "muster/requester says who made the request, which does not change",
		fmt.Sprintf(`{"metadata":{"labels":{%q:"open"}}}`, fleet.LabelRegistrationToken): "which is not the one that asks",
	} {
		if err := tenant.Patch(ctx, own.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch))); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("changing %s afterwards: %v", patch, err)
		}
	}
	r := f.mustAsk(values, f.signed(f.keyOf("web"), values, "web", answerKey(t)))
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
	f.check(attributed(&r, ""))
}

// TestWithoutItsPolicyNoRequestIsBelieved removes the policy against requests with the name of a
// token that the holder does not have.
func TestWithoutItsPolicyNoRequestIsBelieved(t *testing.T) {
	f := newAlone(t, "")
	ctx := context.Background()
	const policies = "fleet/templates/admission-registration.yaml"
	t.Cleanup(func() { f.cluster.InstallTemplate(t, policies) })
	limited := f.stampingToken("limited", fleet.ClusterRegistrationTokenSpec{MaxRegistrations: new(int32(1))})
	f.stampingToken("open", fleet.ClusterRegistrationTokenSpec{})
	other := f.neighbour()
	plain := other.stampingToken("plain", fleet.ClusterRegistrationTokenSpec{})
	f.check(f.Delete(ctx, &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: admission.RegistrationToken},
	}))
	claim := map[string]string{"token": limited["token"], "tokenName": "open"}
	var r fleet.ClusterRegistration
	f.eventually("the holder of a limited token claims another one", func() (err error) {
		r, err = f.ask(claim, f.signed(f.keyOf("web"), claim, "web", answerKey(t)))
		return err
	})
	f.restartHub()
	f.untilState(&r, fleet.RegistrationPending, "NotAttributed")
	f.check(attributed(&r, reasons.PolicyMissing))
	if !strings.Contains(r.Status.Message, "helm upgrade of the chart fleet") || !strings.Contains(r.Status.Message, "muster/approved=true") {
		t.Errorf("it says %q", r.Status.Message)
	}
	granted := other.mustAsk(plain, other.signed(other.keyOf("web"), plain, "web", answerKey(t)))
	other.untilState(&granted, fleet.RegistrationGranted, "Granted")
	f.check(attributed(&granted, reasons.PolicyMissing))

	f.cluster.InstallTemplate(t, policies)
	f.eventually("it is not believed afterwards either", func() error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(&r), &r); err != nil {
			return err
		}
		return attributed(&r, "OlderThanPolicy")
	})
	if r.Status.Granted || r.Status.State != fleet.RegistrationPending {
		t.Errorf("its status is %+v", r.Status)
	}
	again := f.mustAsk(limited, f.signed(f.keyOf("db"), limited, "db", answerKey(t)))
	f.untilState(&again, fleet.RegistrationGranted, "Granted")
	f.check(attributed(&again, ""))
	f.approve(&r)
	f.untilState(&r, fleet.RegistrationGranted, "Granted")
}
