package bundle

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

// copied has the hub place a Bundle with a copy of a Secret, with this digest of its content.
func (r *rig) copied(options fleet.BundleDeploymentOptions, digest string) {
	r.t.Helper()
	options.DownstreamResources = []fleet.DownstreamResource{{Kind: "Secret", Name: "pull"}}
	r.placeWith("web", func(spec *fleet.BundleDeploymentSpec) {
		spec.DeploymentID, spec.DownstreamResourcesGeneration = contents.WithCopies(spec.DeploymentID, digest), int64(len(digest))
	}, options, configMap("web", "one"))
}

// untilSecret waits until a Secret in the target namespace has a value.
func (r *rig) untilSecret(name, value string) *corev1.Secret {
	r.t.Helper()
	secret := &corev1.Secret{}
	r.eventually("Secret "+name+" has "+value, func() error {
		err := r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.target, Name: name}, secret)
		if err != nil || string(secret.Data["value"]) != value {
			return fmt.Errorf("it has %q: %v", secret.Data["value"], err)
		}
		return nil
	})
	return secret
}

func TestDownstreamResourcesComeWithTheirRelease(t *testing.T) {
	r := newRig(t)
	source := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.member, Name: "pull"}, Type: corev1.SecretTypeDockerConfigJson,
		StringData: map[string]string{corev1.DockerConfigJsonKey: "{}", "value": "one"}}
	r.start()
	r.copied(fleet.BundleDeploymentOptions{}, "1")
	r.until("web", fleet.StateErrApplied, "reading Secret pull of downstreamResources on the hub")
	if reason := kube.ReasonOf(r.get("web").Status.Conditions, fleet.ConditionDeployed); reason != reasons.DownstreamResourceUnreadable {
		t.Errorf("the reason is %s", reason)
	}
	r.create(source)
	ready := r.until("web", fleet.StateReady)
	if copied := ready.Status.DownstreamResourcesGeneration; copied == nil || *copied != 1 {
		t.Errorf("the status has the generation %v", copied)
	}
	secret := r.untilSecret("pull", "one")
	if secret.Type != corev1.SecretTypeDockerConfigJson || secret.Annotations["meta.helm.sh/release-name"] != "web" {
		t.Errorf("it is of type %s with %v", secret.Type, secret.Annotations)
	}

	r.change(source, func() { source.StringData = map[string]string{"value": "two"} })
	r.copied(fleet.BundleDeploymentOptions{}, "22")
	r.untilSecret("pull", "two")

	// Drift of a copy is drift.
	r.copied(fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}}, "22")
	r.change(secret, func() { secret.Data["value"] = []byte("mine") })
	r.untilSecret("pull", "two")

	r.placeWith("web", func(spec *fleet.BundleDeploymentSpec) { spec.DownstreamResourcesGeneration = 0 }, fleet.BundleDeploymentOptions{},
		configMap("web", "one"))
	r.eventually("the copy is gone", func() error {
		err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %w", err)
		}
		return nil
	})
	if ready := r.until("web", fleet.StateReady); ready.Status.DownstreamResourcesGeneration != nil {
		t.Errorf("the status keeps the generation %d", *ready.Status.DownstreamResourcesGeneration)
	}
}

// TestACopyIsWithinTheRightsOfItsAccount: a foreign Secret has the name of a copy, and then the
// account of the deployment may not write Secrets.
func TestACopyIsWithinTheRightsOfItsAccount(t *testing.T) {
	r := newRig(t)
	pull := func(namespace, value string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "pull"}, StringData: map[string]string{"value": value}}
	}
	r.create(pull(r.member, "hub's"))
	theirs := pull(r.target, "theirs")
	r.create(theirs)
	r.start()
	r.copied(fleet.BundleDeploymentOptions{}, "1")
	r.until("web", fleet.StateErrApplied, "Secret "+r.target+"/pull", "belongs to no release")
	if now := r.untilSecret("pull", "theirs"); now.UID != theirs.UID {
		t.Error("it was replaced")
	}

	account := metav1.ObjectMeta{Namespace: r.agent, Name: "narrow"}
	r.create(&corev1.ServiceAccount{ObjectMeta: account})
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: "narrow"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}},
	}}
	r.create(role)
	r.create(&rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: "narrow"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "narrow"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: r.agent, Name: "narrow"}},
	})
	r.copied(fleet.BundleDeploymentOptions{ServiceAccount: "narrow"}, "1")
	r.until("web", fleet.StateErrApplied, `cannot get resource "secrets"`) // from here on the account acts
	r.check(r.kube.Delete(t.Context(), theirs))
	r.change(role, func() {
		role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}})
	})
	r.until("web", fleet.StateErrApplied, `cannot patch resource "secrets"`)
	err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(theirs), theirs)
	if !apierrors.IsNotFound(err) {
		t.Errorf("reading the copy of an account without the right: %v", err)
	}
}

// TestAChartWithALoginComesFromItsRepository has a repository with an authority of its own.
func TestAChartWithALoginComesFromItsRepository(t *testing.T) {
	r := newRig(t)
	archive, err := os.ReadFile(packaged(t))
	r.check(err)
	repository := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if user, password, _ := request.BasicAuth(); user != "web" || password != "s3cret" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write(archive) // the deployer sees it
	}))
	t.Cleanup(repository.Close)
	run := r.start()
	options := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Chart: repository.URL + "/web-1.0.0.tgz", SecretName: "login"}}
	r.place("web", options)
	r.until("web", fleet.StateErrApplied, "reading Secret login of helm.secretName on the hub")
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: repository.Certificate().Raw})
	login := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.member, Name: "login"},
		Data: map[string][]byte{"username": []byte("web"), "password": []byte("wr0ng"), "cacerts": authority}}
	r.create(login)
	r.until("web", fleet.StateErrApplied, "answers 401")
	r.change(login, func() { login.Data["password"] = []byte("s3cret") })
	r.until("web", fleet.StateReady)
	if lines := run.lines(); strings.Contains(lines, "s3cret") || strings.Contains(lines, "wr0ng") {
		t.Errorf("a password is in the log:\n%s", lines)
	}
}

// packaged returns the path of the archive of a chart.
func packaged(t *testing.T) string {
	t.Helper()
	path, err := chartutil.Save(&chartv2.Chart{
		Metadata:  &chartv2.Metadata{APIVersion: chartv2.APIVersionV2, Name: "web", Version: "1.0.0"},
		Templates: []*common.File{{Name: "templates/a.yaml", Data: []byte("{apiVersion: v1, kind: ConfigMap, metadata: {name: web}}")}},
	}, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return path
}
