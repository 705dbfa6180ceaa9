package bundle

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	helmkube "helm.sh/helm/v4/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
)

// uid returns the UID of a ConfigMap, or "" if there is none.
func (r *rig) uid(namespace, name string) types.UID {
	r.t.Helper()
	found := &corev1.ConfigMap{}
	err := r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, found)
	r.check(client.IgnoreNotFound(err))
	return found.UID
}

// helmInstall installs a release with one ConfigMap of its name, as a user of Helm's command does.
func (r *rig) helmInstall(name string) {
	r.t.Helper()
	u := r.user()
	u.asHelm(func() error {
		in := action.NewInstall(u.configuration)
		in.ReleaseName, in.Namespace, in.WaitStrategy = name, r.agent, helmkube.HookOnlyStrategy
		_, err := in.Run(&chartv2.Chart{
			Metadata: &chartv2.Metadata{APIVersion: chartv2.APIVersionV2, Name: name, Version: "1.0.0"},
			Templates: []*chartcommon.File{{Name: "templates/own.yaml",
				Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata: {key: users}\n")}},
		}, nil)
		return err
	})
}

func releaseName(name, namespace string) fleet.BundleDeploymentOptions {
	return fleet.BundleDeploymentOptions{DefaultNamespace: namespace, Helm: &fleet.HelmOptions{ReleaseName: name}}
}

func TestTwoBundlesWithOneReleaseNameAreRefused(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("one", releaseName("shared", r.target), configMap("one", "first"))
	before := r.uid(r.target, "one")
	r.place("two", releaseName("shared", r.target), configMap("two", "second"))
	r.until("two", fleet.StateErrApplied, "release shared", "belongs to Bundle one of namespace clusters", "helm.releaseName")
	if deployed := r.get("two").Status.Conditions; !strings.Contains(fmt.Sprint(deployed), "ReleaseConflict") {
		t.Errorf("the conditions are %+v", deployed)
	}
	// What was refused goes without a trace.
	r.place("three", releaseName("shared", r.target), configMap("three", "third"))
	r.until("three", fleet.StateErrApplied, "belongs to Bundle one")
	r.check(r.kube.Delete(t.Context(), r.get("three")))
	r.place("one", releaseName("shared", r.target), configMap("one", "again"))
	r.untilData("one", "again")
	if after := r.uid(r.target, "one"); after != before {
		t.Errorf("what the first delivered was %s and is %q", before, after)
	}
	if r.uid(r.target, "two") != "" {
		t.Error("the second was delivered")
	}
	r.check(r.kube.Delete(t.Context(), r.get("one")))
	r.until("two", fleet.StateReady)
	if r.uid(r.target, "one") != "" {
		t.Error("what the first delivered is left")
	}
}

func TestOneReleaseNameInTwoNamespacesIsTwoReleases(t *testing.T) {
	r := newRig(t)
	r.start()
	other := r.namespace("other-")
	r.place("one", releaseName("shared", r.target), configMap("one", "first"))
	r.place("two", releaseName("shared", other), configMap("two", "second"))
	r.until("one", fleet.StateReady)
	r.until("two", fleet.StateReady)
	r.check(r.kube.Delete(t.Context(), r.get("one")))
	r.eventually("the first goes", func() error {
		if r.uid(r.target, "one") != "" || r.revisions("shared") > 0 {
			return errors.New("it is there")
		}
		return nil
	})
	if r.uid(other, "two") == "" {
		t.Error("the second went with it")
	}
}

func TestBundlesThatDeployOneReleaseNameAtOnceHaveOneWinner(t *testing.T) {
	r := newRig(t)
	const all = 6
	for i := range all {
		name := fmt.Sprintf("b%d", i)
		r.place(name, releaseName("shared", r.target), configMap(name, "one"))
	}
	r.start()
	r.eventually("one is deployed, and the others are refused", func() error {
		ready, refused := 0, 0
		for i := range all {
			switch found := r.get(fmt.Sprintf("b%d", i)); {
			case contents.StateOf(found) == fleet.StateReady:
				ready++
			case strings.Contains(fmt.Sprint(found.Status.Conditions), "ReleaseConflict"):
				refused++
			}
		}
		if ready != 1 || refused != all-1 {
			return fmt.Errorf("%d are ready and %d refused", ready, refused)
		}
		return nil
	})
	delivered := 0
	for i := range all {
		if r.uid(r.target, fmt.Sprintf("b%d", i)) != "" {
			delivered++
		}
	}
	if delivered != 1 || r.revisions("shared") != 1 {
		t.Errorf("%d were delivered, with %d revisions", delivered, r.revisions("shared"))
	}
}

func TestABundleNamedLikeAReleaseThatAUserInstalledIsRefused(t *testing.T) {
	r := newRigAlone(t)
	r.helmInstall("fleet")
	before := r.uid(r.agent, "fleet")
	run := r.start()
	r.place("fleet", fleet.BundleDeploymentOptions{DefaultNamespace: r.agent}, configMap("mine", "one"))
	r.until("fleet", fleet.StateErrApplied, "release fleet in namespace "+r.agent+" belongs to a user who installed it with Helm",
		"helm.releaseName")
	ends := run.ends.Load()
	r.check(r.kube.Delete(t.Context(), r.get("fleet")))
	r.nothingLeftToDo(run, ends)
	if after := r.uid(r.agent, "fleet"); before == "" || after != before || r.revisions("fleet") != 1 || r.uid(r.agent, "mine") != "" {
		t.Errorf("what the user installed was %q and is %q, with %d revisions", before, after, r.revisions("fleet"))
	}
}

func TestABundleMayNotTakeTheReleaseOfTheAgent(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", releaseName("fleet-agent", r.agent), configMap("web", "one"))
	r.until("web", fleet.StateErrApplied, "release fleet-agent", "belongs to the agent", "helm.releaseName")
	if r.uid(r.agent, "web") != "" {
		t.Error("it was delivered")
	}
}

func TestABundleOfTheSameNameInAnotherWorkspaceIsRefused(t *testing.T) {
	r := newRig(t)
	first := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	first.stop()
	before := r.uid(r.target, "web")
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	// The cluster registers in another workspace, which has a Bundle of the same name.
	r.renewReport()
	placed := r.place("web", fleet.BundleDeploymentOptions{}, configMap("other", "two"))
	r.change(placed, func() { placed.Labels[fleet.LabelBundleNamespace] = "elsewhere" })
	run := r.start()
	r.until("web", fleet.StateErrApplied, "belongs to Bundle web of namespace clusters")
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.nothingLeftToDo(run, 0)
	if after := r.uid(r.target, "web"); after != before || r.uid(r.target, "other") != "" {
		t.Errorf("what the first workspace delivered was %s and is %q", before, after)
	}
}

func TestAReleaseThatSomebodyElseTookOverIsNotMoved(t *testing.T) {
	r := newRigAlone(t)
	first := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	first.stop()
	// A user upgrades the release. From now on, the release belongs to the user.
	u := r.userIn(r.target)
	u.asHelm(func() error {
		up := action.NewUpgrade(u.configuration)
		up.Namespace, up.WaitStrategy = r.target, helmkube.HookOnlyStrategy
		_, err := up.Run("web", &chartv2.Chart{
			Metadata: &chartv2.Metadata{APIVersion: chartv2.APIVersionV2, Name: "web", Version: "1.0.0"},
			Templates: []*chartcommon.File{{Name: "templates/own.yaml",
				Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: users}\ndata: {key: users}\n")}},
		}, nil)
		return err
	})
	before := r.uid(r.target, "users")
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	r.until("web", fleet.StateErrApplied, "a user who installed it with Helm")
	// In another namespace it is another release.
	other := r.namespace("other-")
	r.deploy("web", fleet.BundleDeploymentOptions{TargetNamespace: other}, configMap("web", "two"))
	if r.uid(other, "web") == "" {
		t.Error("it is not delivered elsewhere")
	}
	if after := r.uid(r.target, "users"); before == "" || after != before {
		t.Errorf("what the user installed was %q and is %q", before, after)
	}
}

func TestASecretThatHoldsNoReleaseStopsNobodyElse(t *testing.T) {
	r := newRig(t)
	r.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.agent, Name: "poison", Labels: map[string]string{"owner": "helm"}}})
	own := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: "sh.helm.release.v1.bad.v1", Labels: map[string]string{
			"owner": "helm", "name": "bad", "version": "1", "muster/member": string(r.report.UID),
		}},
		Data: map[string][]byte{"release": []byte("nothing")},
	}
	r.create(own)
	run := r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.place("bad", fleet.BundleDeploymentOptions{}, configMap("bad", "one"))
	r.until("web", fleet.StateReady)
	r.until("bad", fleet.StateErrApplied, "secret "+r.target+"/"+own.Name)
	r.blocked(run, "RemovalBlocked", "secret "+r.agent+"/poison holds no release", "1 more")
	r.check(r.kube.Delete(t.Context(), own))
	r.until("bad", fleet.StateReady)
	r.check(r.kube.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: r.agent, Name: "poison"}}))
	r.blocked(run, "")
}

func TestAHistoryThatSomebodyDeletedIsMadeAnew(t *testing.T) {
	r := newRig(t)
	r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	before := r.uid(r.target, "web")
	old := &corev1.Secret{}
	key := client.ObjectKey{Namespace: r.target, Name: "sh.helm.release.v1.web.v1"}
	r.check(r.kube.Get(t.Context(), key, old))
	r.check(r.kube.Delete(t.Context(), old))
	r.eventually("there is another history", func() error {
		found := &corev1.Secret{}
		if err := r.kube.Get(t.Context(), key, found); err != nil || found.UID == old.UID {
			return fmt.Errorf("it is %s: %w", found.UID, err)
		}
		return nil
	})
	r.until("web", fleet.StateReady)
	if after := r.uid(r.target, "web"); after != before {
		t.Errorf("the object was %s and is %s", before, after)
	}
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilGone(r.configMap("web"))
}
