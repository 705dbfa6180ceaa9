package bundle

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"helm.sh/helm/v4/pkg/chart/common"
	helm "helm.sh/helm/v4/pkg/chart/v2"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/repo/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/kube"
)

func TestChartGetsItsValuesFromEverywhere(t *testing.T) {
	r := newRig(t)
	r.start()
	r.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "more", Namespace: r.target}, Data: map[string][]byte{
			"values.yaml": []byte("b: secret\nc: secret\n"),
		},
	})
	files := []fleet.BundleResource{
		file("Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"), file("values.yaml", "a: chart\nb: chart\nc: chart\n"),
		file("values.schema.json", `{"properties":{"a":{"type":"string"}}}`),
		file("templates/web.yaml",
			"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: web\ndata:\n  key: {{ .Values.a }}-{{ .Values.b }}-{{ .Values.c }}\n"),
	}
	options := fleet.BundleDeploymentOptions{DefaultNamespace: r.target, Helm: &fleet.HelmOptions{
		ReleaseName: "named", ValuesFrom: []fleet.ValuesFrom{{SecretKeyRef: &fleet.KeySelector{Name: "more"}}},
	}}
	values := map[string][]byte{fleet.KeyValues: []byte(`{"a":"options","c":"options"}`)}
	r.placeWith("web", func(spec *fleet.BundleDeploymentSpec) { spec.ValuesHash = contents.ValuesHash(values) }, options, files...)
	r.until("web", fleet.StateErrApplied, "reading the values in secret "+r.member+"/web on the hub")
	r.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: r.member}, Type: fleet.SecretTypeDeployment, Data: values})
	r.eventually("all values arrive", func() error {
		if got, err := r.data("web"); got != "options-secret-secret" {
			return fmt.Errorf("the data is %q, %v", got, err)
		}
		return nil
	})
	found := r.until("web", fleet.StateReady)
	if want := r.target + "/named:"; !strings.HasPrefix(found.Status.Release, want) {
		t.Errorf("release %s, want %s", found.Status.Release, want)
	}
	options.Helm.Values = &runtime.RawExtension{Raw: []byte(`{"a":1}`)}
	options.Helm.ValuesFrom, options.Helm.ReleaseName = nil, "bad"
	r.place("bad", options, files...)
	r.until("bad", fleet.StateErrApplied, "at '/a'")
	options.Helm.SkipSchemaValidation = true
	r.place("bad", options, append(files[:3:3], file("templates/bad.yaml", "{{ fail \"as it should\" }}"))...)
	r.until("bad", fleet.StateErrApplied, "as it should")
}

func TestAChartOfARepositoryIsDeployedAndItsDigestNoted(t *testing.T) {
	r := newRig(t)
	r.start()
	dir := t.TempDir()
	archive, err := chartutil.Save(&helm.Chart{
		Metadata: &helm.Metadata{APIVersion: "v2", Name: "web", Version: "1.0.0"},
		Templates: []*common.File{{
			Name: "templates/web.yaml", Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\ndata: {key: {{ .Values.a }}}\n"),
		}},
	}, dir)
	r.check(err)
	index, err := repo.IndexDirectory(dir, "")
	r.check(err)
	r.check(index.WriteFile(filepath.Join(dir, "index.yaml"), 0o600))
	server := httptest.NewServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	options := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{
		Repo: server.URL, Chart: "web", Version: "1.x.x", Values: &runtime.RawExtension{Raw: []byte(`{"a":"fetched"}`)},
	}}
	r.place("web", options)
	r.until("web", fleet.StateErrApplied, "1.x.x", "write the one")
	options.Helm.Version = "1.0.0"
	r.place("web", options)
	r.untilData("web", "fetched")
	r.until("web", fleet.StateReady)
	history := &corev1.Secret{}
	r.check(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "sh.helm.release.v1.web.v1"}, history))
	packed, err := base64.StdEncoding.DecodeString(string(history.Data["release"]))
	r.check(err)
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	r.check(err)
	text, err := io.ReadAll(unzipped)
	r.check(err)
	file, err := os.ReadFile(archive)
	r.check(err)
	if want := fmt.Sprintf("muster/chart-digest\":\"sha256:%x", sha256.Sum256(file)); !strings.Contains(string(text), want) {
		t.Errorf("the release does not say %s", want)
	}
}

func TestKindAndItsObjectComeInOneBundle(t *testing.T) {
	r := newRig(t)
	r.start()
	found := r.deploy("wheels", fleet.BundleDeploymentOptions{}, r.definitionOf("wheels", "Wheel"),
		file("a.yaml", "apiVersion: "+r.group()+"/v1\nkind: Wheel\nmetadata:\n  name: one\n"))
	if found.Status.ResourceCounts.Ready != 2 {
		t.Errorf("counts %+v", found.Status.ResourceCounts)
	}
}

func TestObjectOfTwoBundlesIsNamedWithBoth(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("first", fleet.BundleDeploymentOptions{}, configMap("shared", "one"))
	r.place("second", fleet.BundleDeploymentOptions{}, configMap("shared", "two"))
	r.until("second", fleet.StateErrApplied,
		"ConfigMap "+r.target+"/shared cannot be deployed with Bundle second, because it belongs to Bundle first", "takeOwnership")
	r.deploy("second", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TakeOwnership: true}}, configMap("shared", "two"))
	r.until("first", fleet.StateModified, "not owned by us")
}

func TestBadInputIsNamed(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("yaml", fleet.BundleDeploymentOptions{}, file("a/web.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n"))
	r.place("field", fleet.BundleDeploymentOptions{},
		file("web.yaml", "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  porst: []\n"))
	r.place("kind", fleet.BundleDeploymentOptions{}, file("web.yaml", "apiVersion: example.com/v1\nkind: Wheel\nmetadata:\n  name: web\n"))
	r.place("scope", fleet.BundleDeploymentOptions{TargetNamespace: r.target},
		file("ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: scope-of-all\n"))
	r.place("chart", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Repo: "http://127.0.0.1:1", Chart: "web"}}, configMap("a", "a"))
	r.place("account", fleet.BundleDeploymentOptions{ServiceAccount: "nobody"}, configMap("b", "b"))
	no := false
	r.place("nowhere", fleet.BundleDeploymentOptions{DefaultNamespace: "not-there", CreateNamespace: &no}, configMap("c", "c"))
	r.place("fence", fleet.BundleDeploymentOptions{
		AllowedTargetNamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "web"}},
	},
		configMap("fence", "fence"))
	r.placeWith("oci", func(spec *fleet.BundleDeploymentSpec) { spec.OCIContents = true },
		fleet.BundleDeploymentOptions{}, configMap("d", "d"))

	packed, err := contents.Pack([]fleet.BundleResource{configMap("evil", r.target)})
	r.check(err)
	other, err := contents.Pack([]fleet.BundleResource{configMap("good", r.target)})
	r.check(err)
	packed.Name = other.Name
	r.create(packed)
	r.place("tampered", fleet.BundleDeploymentOptions{}, configMap("good", r.target))

	r.until("yaml", fleet.StateErrApplied, "a/web.yaml is no valid YAML", "line 3")
	r.until("field", fleet.StateErrApplied, "porst")
	r.until("kind", fleet.StateErrApplied, `no matches for kind "Wheel"`)
	r.until("scope", fleet.StateErrApplied, "Namespace scope-of-all is cluster-scoped")
	r.until("chart", fleet.StateErrApplied, "fetching chart http://127.0.0.1:1 web", "connection refused")
	r.until("account", fleet.StateErrApplied, "service account "+r.agent+"/nobody, which spec.options.serviceAccount names, does not exist")
	r.until("nowhere", fleet.StateErrApplied, "namespace not-there does not exist")
	r.until("fence", fleet.StateErrApplied, "namespace "+r.target+" may not be deployed to", "team=web")
	found := r.until("oci", fleet.StateErrApplied, "spec.ociContents is not implemented")
	if supported := kube.FindCondition(found.Status.Conditions, fleet.ConditionSupported); supported == nil ||
		supported.Status != corev1.ConditionFalse {
		t.Errorf("condition Supported is %+v", supported)
	}
	r.until("tampered", fleet.StateErrApplied, "was changed since it was made")
	if _, err := r.data("evil"); !apierrors.IsNotFound(err) {
		t.Errorf("what was tampered with is deployed: %v", err)
	}
}

func TestDeploymentThatWaitsHoldsNoOtherUp(t *testing.T) {
	r := newRig(t)
	r.start()
	hook := file("hook.yaml", `apiVersion: batch/v1
kind: Job
metadata:
  name: never
  annotations: {"helm.sh/hook": pre-install}
spec:
  template:
    spec: {restartPolicy: Never, containers: [{name: a, image: nowhere.example.com/a}]}
`)
	const timeout = 40 // seconds: less than that the others need, also on a busy machine
	r.place("hook", fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{TimeoutSeconds: timeout}}, hook, configMap("behind", "one"))
	r.placeWith("after", func(spec *fleet.BundleDeploymentSpec) { spec.DependsOn = []fleet.BundleRef{{Name: "base"}} },
		fleet.BundleDeploymentOptions{}, configMap("after", "one"))
	r.placeWith("paused", func(spec *fleet.BundleDeploymentSpec) { spec.Paused = true }, fleet.BundleDeploymentOptions{},
		configMap("paused", "one"))
	begun := time.Now()
	r.deploy("other", fleet.BundleDeploymentOptions{}, configMap("other", "one"))
	if took := time.Since(begun); took > timeout*time.Second {
		t.Errorf("the other one took %s: as long as the hook that never ends", took)
	}
	r.until("hook", fleet.StateWaitApplied, "Helm waits for its hooks")
	r.until("after", fleet.StateWaitingForDependency, "waiting for Bundle base, which is not deployed to this cluster")
	r.place("base", fleet.BundleDeploymentOptions{}, configMap("base", "one"))
	r.until("after", fleet.StateReady)
	r.until("hook", fleet.StateErrApplied, "never")
	if _, err := r.data("paused"); !apierrors.IsNotFound(err) {
		t.Errorf("what is paused is deployed: %v", err)
	}
}

func TestWorkloadThatIsNotReadyIsNamed(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, file("deployment.yaml", `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: nowhere.example.com/a}]}
`), configMap("web", "one"))
	found := r.until("web", fleet.StateNotReady, "Deployment "+r.target+"/web is InProgress", "Available: 0/1")
	if !found.Status.NonModified || found.Status.Ready || found.Status.ResourceCounts.NotReady != 1 || found.Status.ResourceCounts.Ready != 1 {
		t.Errorf("status %+v", found.Status)
	}
}

func TestNamespaceThatIsGoingIsWaitedFor(t *testing.T) {
	r := newRig(t)
	r.start()
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "held", Namespace: r.target, Finalizers: []string{"test/hold"}}}
	r.create(held)
	r.check(r.kube.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: r.target}}))
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.until("web", fleet.StateWaitApplied, "namespace "+r.target+" is being deleted")
	r.edit("held", `{"metadata":{"finalizers":null}}`)
	r.until("web", fleet.StateReady)
}

func TestBundleOfAnAccountDoesNothingThatTheAccountMayNot(t *testing.T) {
	r := newRig(t)
	r.start()
	r.account("team", "configmaps")
	team := fleet.BundleDeploymentOptions{DefaultNamespace: r.target, ServiceAccount: "team"}
	r.deploy("may", team, configMap("web", "one"))
	r.place("secret", team, file("secret.yaml", "apiVersion: v1\nkind: Secret\nmetadata:\n  name: web\n"))
	r.until("secret", fleet.StateErrApplied, `system:serviceaccount:`+r.agent+`:team" cannot`, "secrets")
	team.Helm = &fleet.HelmOptions{ValuesFrom: []fleet.ValuesFrom{{SecretKeyRef: &fleet.KeySelector{Name: "any", Namespace: r.agent}}}}
	r.place("values", team, configMap("values", "one"))
	r.until("values", fleet.StateErrApplied, `:team" cannot get resource "secrets"`)
	team.Helm, team.NamespaceLabels = nil, map[string]string{"pod-security.kubernetes.io/enforce": "privileged"}
	r.place("label", team, configMap("label", "one"))
	r.until("label", fleet.StateErrApplied, `:team" cannot patch resource "namespaces"`)
	r.check(r.kube.Delete(t.Context(), r.get("may")))
	r.untilGone(r.configMap("web"))
}

func TestManyObjectsAreCountedAndSomeAreListed(t *testing.T) {
	const count = 600 // more than a status lists, and than a list has on one page
	r := newRig(t)
	r.start()
	var many strings.Builder
	for i := range count {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: many-%d\n", i)
	}
	found := r.deploy("many", fleet.BundleDeploymentOptions{}, file("many.yaml", many.String()))
	if counts := found.Status.ResourceCounts; counts.Ready != count || counts.DesiredReady != count || len(found.Status.Resources) != 500 ||
		!found.Status.IncompleteState {
		t.Errorf("%d are listed, counted %+v", len(found.Status.Resources), counts)
	}
	r.check(r.kube.Delete(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "many-99", Namespace: r.target}}))
	r.until("many", fleet.StateModified, "many-99 missing")
	r.check(r.kube.Delete(t.Context(), r.get("many")))
	r.eventually("all are removed", func() error {
		left := &corev1.ConfigMapList{}
		if err := r.kube.List(t.Context(), left, client.InNamespace(r.target), client.HasLabels{release.LabelSet}, client.Limit(1)); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%s is left", left.Items[0].Name)
		}
		return nil
	})
}
