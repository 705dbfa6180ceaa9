package bundle

import (
	"crypto/sha1" //nolint:gosec // as upstream does
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/action"
	chartcommon "helm.sh/helm/v4/pkg/chart/common"
	chartv2 "helm.sh/helm/v4/pkg/chart/v2"
	helmkube "helm.sh/helm/v4/pkg/kube"
	"helm.sh/helm/v4/pkg/release/common"
	helm "helm.sh/helm/v4/pkg/release/v1"
	"helm.sh/helm/v4/pkg/storage/driver"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

// theirs is an agent of Rancher Fleet: Helm of version 3, which writes client-side, as a manager of
// its own, into the namespace of the release.
type theirs struct {
	*rig
	// bundle is what it deploys, agent the namespace in which it says to be.
	bundle, name, namespace, agent string
}

func (r *rig) theirs(bundle, name, namespace string) theirs {
	return theirs{r, bundle, name, namespace, r.agent}
}

func (a theirs) chart(files ...fleet.BundleResource) *chartv2.Chart {
	made := &chartv2.Chart{Metadata: &chartv2.Metadata{APIVersion: chartv2.APIVersionV2, Name: a.bundle, Version: "v0.0.0+s-1"}}
	if a.bundle != "" {
		made.Metadata.Annotations = map[string]string{
			"fleet.cattle.io/bundle-id": a.bundle, "fleet.cattle.io/agent-namespace": a.agent, "fleet.cattle.io/service-account": "",
			"fleet.cattle.io/keep-resources": "false", "fleet.cattle.io/commit": "abc",
		}
	} else {
		made.Metadata.Name = "users"
	}
	for _, file := range files {
		made.Templates = append(made.Templates, &chartcommon.File{Name: "templates/" + file.Name, Data: []byte(file.Content)})
	}
	return made
}

// deploy installs or upgrades, and says which revision it made.
func (a theirs) deploy(files ...fleet.BundleResource) int {
	a.t.Helper()
	u := a.userIn(a.namespace)
	defer a.actAs("fleetagent")()
	if _, err := u.configuration.Releases.Last(a.name); errors.Is(err, driver.ErrReleaseNotFound) {
		in := action.NewInstall(u.configuration)
		in.ReleaseName, in.Namespace, in.ServerSideApply, in.ForceConflicts, in.WaitStrategy = a.name, a.namespace, false, false,
			helmkube.HookOnlyStrategy
		_, err := in.Run(a.chart(files...), nil)
		a.check(err)
		return 1
	}
	up := action.NewUpgrade(u.configuration)
	up.Namespace, up.ServerSideApply, up.MaxHistory, up.ResetValues, up.WaitStrategy = a.namespace, "false", 2, true, helmkube.HookOnlyStrategy
	made, err := up.Run(a.name, a.chart(files...), nil)
	a.check(err)
	return made.(*helm.Release).Version
}

// labelled is a ConfigMap as agents deploy it.
func labelled(bundle, name string, data map[string]string) fleet.BundleResource {
	set := "default-" + bundle
	text := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  annotations: {objectset.rio.cattle.io/id: %s}\n"+
		"  labels: {objectset.rio.cattle.io/hash: %x}\ndata:\n", name, set, sha1.Sum([]byte(set))) //nolint:gosec // as upstream does
	for key, value := range data {
		text += fmt.Sprintf("  %s: %q\n", key, value)
	}
	return file(name+".yaml", text)
}

func keys(keys ...string) map[string]string {
	all := map[string]string{}
	for _, key := range keys {
		all[key] = "x"
	}
	return all
}

// delivered is a ConfigMap in the target namespace.
func (r *rig) delivered(name string) *corev1.ConfigMap {
	r.t.Helper()
	found := &corev1.ConfigMap{}
	r.check(r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.target, Name: name}, found))
	return found
}

// listed is what helm list -n shows: each release with its revision.
func (r *rig) listed(namespace string) map[string]int {
	r.t.Helper()
	list := action.NewList(r.userIn(namespace).configuration)
	list.All = true
	list.SetStateMask()
	found, err := list.Run()
	r.check(err)
	all := map[string]int{}
	for _, one := range found {
		all[one.(*helm.Release).Name] = one.(*helm.Release).Version
	}
	return all
}

// applied plays what their agent has reported.
func (r *rig) applied(deployment *fleet.BundleDeployment) {
	r.t.Helper()
	found := r.get(deployment.Name)
	found.Status.AppliedDeploymentID = deployment.Spec.DeploymentID
	r.check(r.kube.Status().Update(r.t.Context(), found))
}

// nothingLeftToDo waits until the deployer ends of itself.
func (r *rig) nothingLeftToDo(run *running, since int32) {
	r.t.Helper()
	r.eventually("the deployer has nothing left to do", func() error {
		if run.ends.Load() == since {
			return errors.New("it runs")
		}
		return nil
	})
}

func TestOursGoesOnWithTheHistoryOfTheirAgent(t *testing.T) {
	r := newRigAlone(t)
	web := r.theirs("web.v1", "web-v1-c6e69c9f", r.target)
	first := []fleet.BundleResource{labelled("web.v1", "stays", keys("a", "b")), labelled("web.v1", "goes", keys("a"))}
	web.deploy(labelled("web.v1", "stays", keys("a")))
	if got := web.deploy(first...); got != 2 {
		t.Fatalf("their agent is at revision %d", got)
	}
	before := r.delivered("stays")
	r.applied(r.place("web.v1", fleet.BundleDeploymentOptions{}, first...))

	r.start()
	found := r.until("web.v1", fleet.StateReady)
	if after := r.delivered("stays"); after.ResourceVersion != before.ResourceVersion ||
		!strings.HasSuffix(found.Status.Release, "/"+web.name+":2") {
		t.Errorf("the object went from version %s to %s, the release is %s", before.ResourceVersion, after.ResourceVersion, found.Status.Release)
	}
	r.place("web.v1", fleet.BundleDeploymentOptions{}, labelled("web.v1", "stays", keys("a")))
	r.eventually("what left the Bundle is gone", func() error {
		if r.uid(r.target, "goes") != "" {
			return errors.New("the object is there")
		}
		if after := r.delivered("stays"); !maps.Equal(after.Data, keys("a")) || after.UID != before.UID {
			return fmt.Errorf("the object is %s with %v, was %s", after.UID, after.Data, before.UID)
		}
		return nil
	})
	r.until("web.v1", fleet.StateReady)
	if all := r.listed(r.target); !maps.Equal(all, map[string]int{web.name: 3}) {
		t.Errorf("helm list shows %v", all)
	}
	if all := r.listed(r.agent); len(all) > 0 {
		t.Errorf("in the agent's namespace it shows %v", all)
	}
}

func TestTheirsGoesOnWithOurHistory(t *testing.T) {
	r := newRigAlone(t)
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, labelled("web", "stays", keys("a", "b")), labelled("web", "goes", keys("a")))
	run.stop()
	before := r.delivered("stays")
	u := r.userIn(r.target)
	last, err := u.configuration.Releases.Last("web")
	r.check(err)
	annotations := last.(*helm.Release).Chart.Metadata.Annotations
	for key, want := range map[string]string{
		"bundle-id": "web", "agent-namespace": r.agent, "service-account": "", "keep-resources": "false",
	} {
		if got, there := annotations["fleet.cattle.io/"+key]; !there || got != want {
			t.Errorf("annotation %s is %q, want %q", key, got, want)
		}
	}
	if got := r.theirs("web", "web", r.target).deploy(labelled("web", "stays", keys("a"))); got != 2 {
		t.Errorf("their agent makes revision %d, want 2", got)
	}
	if after := r.delivered("stays"); after.UID != before.UID || !maps.Equal(after.Data, keys("a")) || r.uid(r.target, "goes") != "" {
		t.Errorf("the object was %s and is %s with %v, the other is %q", before.UID, after.UID, after.Data, r.uid(r.target, "goes"))
	}
	// And back.
	r.applied(r.place("web", fleet.BundleDeploymentOptions{}, labelled("web", "stays", keys("a"))))
	r.start()
	r.until("web", fleet.StateReady)
	r.place("web", fleet.BundleDeploymentOptions{}, labelled("web", "stays", keys("c")))
	r.eventually("the key is another one", func() error {
		if after := r.delivered("stays"); !maps.Equal(after.Data, keys("c")) || after.UID != before.UID {
			return fmt.Errorf("the object is %s with %v", after.UID, after.Data)
		}
		return nil
	})
	if all := r.listed(r.target); !maps.Equal(all, map[string]int{"web": 3}) {
		t.Errorf("helm list shows %v", all)
	}
}

func TestABundleThatWasDeletedWhileTheAgentsChangedIsRemoved(t *testing.T) {
	r := newRigAlone(t)
	r.theirs("web", "web", r.target).deploy(labelled("web", "web", keys("a")))
	r.start()
	r.eventually("it goes", func() error {
		if r.uid(r.target, "web") != "" || r.revisions("web") > 0 {
			return errors.New("it is there")
		}
		return nil
	})
}

func TestABundleThatWasDeletedWhileTheirAgentWasThereInBetweenIsRemoved(t *testing.T) {
	r := newRigAlone(t)
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, labelled("web", "web", keys("a")))
	run.stop()
	r.theirs("web", "web", r.target).deploy(labelled("web", "web", keys("b")))
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	// The hub made the report anew when the agent came back; the account is the same.
	r.renewReport()
	r.start()
	r.eventually("it goes", func() error {
		if r.uid(r.target, "web") != "" || r.revisions("web") > 0 {
			return errors.New("it is there")
		}
		return nil
	})
}

func TestWhatAnotherDeployedIsLeftAlone(t *testing.T) {
	r := newRigAlone(t)
	user, other, earlier := r.theirs("", "users", r.target), r.theirs("others", "others", r.target), r.theirs("earlier", "earlier", r.target)
	user.deploy(labelled("", "users", keys("a")))
	other.agent = "cattle-fleet-local-system"
	other.deploy(labelled("others", "others", keys("a")))
	earlier.deploy(labelled("earlier", "earlier", keys("a")))
	// The cluster joins this hub only now.
	last := r.delivered("earlier").CreationTimestamp
	r.eventually("another second has begun", func() error {
		account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: r.member}}
		r.check(r.kube.Delete(t.Context(), account.DeepCopy()))
		r.create(account)
		if !account.CreationTimestamp.After(last.Time) {
			return errors.New("it has not")
		}
		return nil
	})
	run := r.start()
	r.nothingLeftToDo(run, 0)
	for _, name := range []string{"users", "others", "earlier"} {
		if r.uid(r.target, name) == "" || r.revisions(name) != 1 {
			t.Errorf("%s is gone, or has %d revisions", name, r.revisions(name))
		}
	}
	r.says(run, "Release left alone", "earlier", "before this cluster joined")
	// Nor is it taken by a Bundle of the name.
	for _, name := range []string{"users", "others"} {
		r.place(name, fleet.BundleDeploymentOptions{}, configMap(name, "mine"))
		r.until(name, fleet.StateErrApplied, "release "+name+" in namespace "+r.target+" belongs to", "helm.releaseName")
	}
	if status := r.lastOf("users").Info.Status; status != common.StatusDeployed {
		t.Errorf("the user's release is %s", status)
	}
}

// lastOf is the newest revision of a release in the target namespace.
func (r *rig) lastOf(name string) *helm.Release {
	r.t.Helper()
	found, err := r.userIn(r.target).configuration.Releases.Last(name)
	r.check(err)
	return found.(*helm.Release)
}
