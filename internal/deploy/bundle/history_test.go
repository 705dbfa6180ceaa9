package bundle

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/release"
)

// asEarlier puts the history of a release where earlier versions kept it.
func (r *rig) asEarlier(namespace, name string) {
	r.t.Helper()
	histories := &corev1.SecretList{}
	r.check(r.kube.List(r.t.Context(), histories, client.InNamespace(namespace), client.MatchingLabels{"owner": "helm", "name": name}))
	for _, secret := range histories.Items {
		earlier := secret.DeepCopy()
		earlier.ObjectMeta = metav1.ObjectMeta{Namespace: r.agent, Name: secret.Name, Labels: secret.Labels}
		r.create(earlier)
		r.check(r.kube.Delete(r.t.Context(), &secret))
	}
}

// cutOff answers every write but for the first with an error, as if the process ended there.
type cutOff struct {
	http.RoundTripper
	writes int
}

func (c *cutOff) RoundTrip(request *http.Request) (*http.Response, error) {
	if request.Method != http.MethodGet {
		if c.writes++; c.writes > 1 {
			return nil, errors.New("cut off")
		}
	}
	return c.RoundTripper.RoundTrip(request)
}

// reach is the cluster as the agent reaches it, through what wraps its connection.
func (r *rig) reach(wrap func(http.RoundTripper) http.RoundTripper) *release.Cluster {
	r.t.Helper()
	config := rest.CopyConfig(r.downstream.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + r.agent + ":fleet-agent"}
	if wrap != nil {
		config.Wrap(wrap)
	}
	cluster, err := release.NewCluster(config, r.agent)
	r.check(err)
	cluster.HookWait = r.hookWait
	return cluster
}

// moves brings the history of a Bundle's release elsewhere, cut off after every write, and
// says how often it was.
func (r *rig) moves(bundle string, to release.ID) (cut int) {
	r.t.Helper()
	for {
		found, err := r.reach(nil).List(r.t.Context())
		r.check(err)
		all, there := found.Releases[bundle]
		if !there {
			r.t.Fatalf("the release of Bundle %s is lost", bundle)
		}
		s := all[0]
		if s.ID() == to && s.History == to.Namespace {
			return cut
		}
		cluster := r.reach(func(next http.RoundTripper) http.RoundTripper { return &cutOff{RoundTripper: next} })
		if err := cluster.Move(r.t.Context(), s, to, release.Owner{Bundle: bundle, Workspace: s.Workspace}); err != nil {
			cut++
		}
		if cut > 20 {
			r.t.Fatalf("it is never done")
		}
	}
}

func TestAHistoryOfAnEarlierVersionMovesWhateverCutsItOff(t *testing.T) {
	r := newRigAlone(t)
	run := r.start()
	for _, value := range []string{"one", "two"} {
		r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", value))
		r.untilData("web", value)
		r.until("web", fleet.StateReady)
	}
	run.stop()
	before := r.delivered("web")
	r.asEarlier(r.target, "web")
	if cut := r.moves("web", release.ID{Namespace: r.target, Name: "web"}); cut < 3 {
		t.Errorf("it was cut off %d times only", cut)
	}
	if here, there := r.listed(r.target), r.listed(r.agent); !maps.Equal(here, map[string]int{"web": 2}) || len(there) > 0 {
		t.Errorf("helm list shows %v, in the agent's namespace %v", here, there)
	}
	r.start()
	r.until("web", fleet.StateReady)
	if after := r.delivered("web"); after.ResourceVersion != before.ResourceVersion || r.revisions("web") != 2 {
		t.Errorf("the object went from version %s to %s, with %d revisions", before.ResourceVersion, after.ResourceVersion, r.revisions("web"))
	}
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "three"))
	r.untilData("web", "three")
	if after := r.delivered("web"); after.UID != before.UID {
		t.Errorf("the object was %s and is %s", before.UID, after.UID)
	}
}

// TestAHistoryOfAnEarlierVersionGoesOnWithThatOfTheirAgent follows a cluster that changed
// from their agent to an earlier version of ours, which left the history of theirs behind
// and installed anew.
func TestAHistoryOfAnEarlierVersionGoesOnWithThatOfTheirAgent(t *testing.T) {
	r := newRigAlone(t)
	r.theirs("web", "web", r.target).deploy(labelled("web", "web", map[string]string{"key": "theirs"}))
	dead := &corev1.Secret{}
	r.check(r.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "sh.helm.release.v1.web.v1"}, dead))
	r.check(r.kube.Delete(t.Context(), dead.DeepCopy()))
	run := r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "ours"))
	r.untilData("web", "ours")
	r.until("web", fleet.StateReady)
	run.stop()
	r.asEarlier(r.target, "web")
	dead.ObjectMeta = metav1.ObjectMeta{Namespace: dead.Namespace, Name: dead.Name, Labels: dead.Labels}
	r.create(dead)
	before := r.delivered("web")
	r.start()
	r.eventually("one history goes on", func() error {
		if here, there := r.listed(r.target), r.listed(r.agent); !maps.Equal(here, map[string]int{"web": 2}) || len(there) > 0 {
			return fmt.Errorf("helm list shows %v, in the agent's namespace %v", here, there)
		}
		return nil
	})
	if after := r.delivered("web"); after.ResourceVersion != before.ResourceVersion {
		t.Errorf("the object went from version %s to %s", before.ResourceVersion, after.ResourceVersion)
	}
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "again"))
	r.untilData("web", "again")
	r.until("web", fleet.StateReady)
	if after := r.delivered("web"); after.UID != before.UID || r.listed(r.target)["web"] != 3 {
		t.Errorf("the object was %s and is %s, helm list shows %v", before.UID, after.UID, r.listed(r.target))
	}
}

func TestAHistoryOfAnEarlierVersionStaysUntilItsNamespaceIsThere(t *testing.T) {
	r := newRigAlone(t)
	run := r.start()
	made := r.target + "-made"
	options := fleet.BundleDeploymentOptions{DefaultNamespace: made}
	for _, name := range []string{"web", "goes"} {
		r.deploy(name, options, configMap(name, "one"))
	}
	run.stop()
	r.asEarlier(made, "web")
	r.asEarlier(made, "goes")
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: made}}
	r.check(r.kube.Delete(t.Context(), namespace))
	r.eventually("the namespace is gone", func() error {
		if err := r.kube.Get(t.Context(), client.ObjectKeyFromObject(namespace), namespace); !apierrors.IsNotFound(err) {
			return fmt.Errorf("it is there: %w", err)
		}
		return nil
	})
	run = r.start()
	r.says(run, "Failed to move the history of a release to its namespace", made+"/web:1")
	r.place("web", options, configMap("web", "two"))
	r.eventually("it is deployed, and its history moves", func() error {
		if all := r.listed(made); !maps.Equal(all, map[string]int{"web": 2}) || r.uid(made, "web") == "" {
			return fmt.Errorf("helm list shows %v", all)
		}
		return nil
	})
	r.check(r.kube.Delete(t.Context(), r.get("goes")))
	r.eventually("one that is not deployed again can be removed", func() error {
		if all := r.listed(r.agent); len(all) > 0 {
			return fmt.Errorf("helm list shows %v in the agent's namespace", all)
		}
		return nil
	})
}

func TestAHistoryIsNotMovedIntoTheReleaseOfSomebodyElse(t *testing.T) {
	r := newRigAlone(t)
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	run.stop()
	r.asEarlier(r.target, "web")
	r.theirs("", "web", r.target).deploy(labelled("", "users", keys("a")))
	before := r.lastOf("web")
	run = r.start()
	r.says(run, "Failed to move the history of a release to its namespace", "a user who installed it with Helm")
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"))
	r.until("web", fleet.StateErrApplied, "release web in namespace "+r.target+" belongs to a user who installed it with Helm",
		"helm.releaseName")
	if after := r.lastOf("web"); after.Version != before.Version || r.uid(r.target, "users") == "" || r.listed(r.agent)["web"] != 1 {
		t.Errorf("the user's release is at revision %d, helm list shows %v in the agent's namespace", after.Version, r.listed(r.agent))
	}
	if got, err := r.data("web"); got != "one" {
		t.Errorf("what was deployed is %q, %v", got, err)
	}
	// Under a name of its own it goes on.
	options := releaseName("ours", r.target)
	options.Helm.TakeOwnership = true
	r.place("web", options, configMap("web", "two"))
	r.untilData("web", "two")
	r.until("web", fleet.StateReady)
	if here, there := r.listed(r.target), r.listed(r.agent); !maps.Equal(here, map[string]int{"web": 1, "ours": 2}) || len(there) > 0 {
		t.Errorf("helm list shows %v, in the agent's namespace %v", here, there)
	}
}

const claim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: none
  resources: {requests: {storage: 1Mi}}
`

// claimed is who has the PersistentVolumeClaim, and its UID.
func (r *rig) claimed() (releaseName string, uid types.UID) {
	r.t.Helper()
	found := &corev1.PersistentVolumeClaim{}
	r.check(client.IgnoreNotFound(r.kube.Get(r.t.Context(), client.ObjectKey{Namespace: r.target, Name: "data"}, found)))
	return found.Annotations["meta.helm.sh/release-name"], found.UID
}

func TestAReleaseThatGetsAnotherNameKeepsItsObjects(t *testing.T) {
	for _, row := range []struct {
		name, before, after string
		takeOwnership       bool
	}{
		{"with takeOwnership", "one", "two", true},
		{"whose name was derived in another way by an earlier version", "dotted-name-v1", "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := newRigAlone(t)
			r.start()
			options := releaseName(row.before, r.target)
			r.place("dotted.name.v1", options, file("claim.yaml", claim), configMap("goes", "one"))
			r.eventually("the claim is there", func() error {
				if name, _ := r.claimed(); name != row.before || r.uid(r.target, "goes") == "" {
					return errors.New("it is not")
				}
				return nil
			})
			_, before := r.claimed()
			options.Helm = &fleet.HelmOptions{ReleaseName: row.after, TakeOwnership: row.takeOwnership}
			wanted := row.after
			if wanted == "" {
				wanted = "dotted-name-v1-9fca4717"
			}
			r.place("dotted.name.v1", options, file("claim.yaml", claim))
			r.eventually("the claim is the new release's, and the history before goes", func() error {
				name, uid := r.claimed()
				if uid != before {
					t.Fatalf("the claim was %s and is %q", before, uid)
				}
				if all := r.listed(r.target); name != wanted || len(all) != 1 || all[wanted] == 0 {
					return fmt.Errorf("it is release %s's, helm list shows %v", name, all)
				}
				return nil
			})
			if r.uid(r.target, "goes") != "" {
				t.Error("what left the Bundle is there")
			}
			r.check(r.kube.Delete(t.Context(), r.get("dotted.name.v1")))
			r.eventually("all goes with the Bundle", func() error {
				if all := r.listed(r.target); len(all) > 0 {
					return fmt.Errorf("helm list shows %v", all)
				}
				return nil
			})
		})
	}
}

func TestAReleaseThatWasRenamedHalfwayIsDeployedAgain(t *testing.T) {
	r := newRigAlone(t)
	run := r.start()
	r.deploy("web", releaseName("one", r.target), configMap("web", "one"))
	run.stop()
	before := r.delivered("web")
	options := releaseName("two", r.target)
	options.Helm.TakeOwnership = true
	r.place("web", options, configMap("web", "one"))
	if cut := r.moves("web", release.ID{Namespace: r.target, Name: "two"}); cut == 0 {
		t.Error("it was never cut off")
	}
	r.start()
	r.eventually("the object is the new release's", func() error {
		if after := r.delivered("web"); after.UID != before.UID || after.Annotations["meta.helm.sh/release-name"] != "two" {
			return fmt.Errorf("it was %s, and is %s of release %s", before.UID, after.UID, after.Annotations["meta.helm.sh/release-name"])
		}
		return nil
	})
	r.until("web", fleet.StateReady)
	if all := r.listed(r.target); !maps.Equal(all, map[string]int{"two": 2}) {
		t.Errorf("helm list shows %v", all)
	}
}

func TestAReleaseWithAnotherNameIsInstalledAnewWithoutTakeOwnership(t *testing.T) {
	r := newRigAlone(t)
	r.start()
	r.deploy("web", releaseName("one", r.target), configMap("web", "one"))
	before := r.delivered("web")
	r.place("web", releaseName("two", r.target), configMap("web", "one"))
	r.until("web", fleet.StateReady)
	if after := r.delivered("web"); after.UID != before.UID || after.Annotations["meta.helm.sh/release-name"] != "two" {
		t.Errorf("it was %s, and is %s of release %s", before.UID, after.UID, after.Annotations["meta.helm.sh/release-name"])
	}
	if all := r.listed(r.target); !maps.Equal(all, map[string]int{"two": 1}) {
		t.Errorf("helm list shows %v", all)
	}
}

func TestANamespaceThatAReleaseBringsGoesLast(t *testing.T) {
	r := newRigAlone(t)
	r.start()
	own := r.target + "-own"
	brought := file("namespace.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+own+"}\n")
	held := file("held.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: held, namespace: "+r.target+", finalizers: [test/hold]}\n")
	r.deploy("web", fleet.BundleDeploymentOptions{DefaultNamespace: own}, brought, held, configMap("web", "one"))
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.eventually("the objects go", func() error {
		if r.delivered("held").DeletionTimestamp == nil || r.uid(own, "web") != "" {
			return errors.New("they do not")
		}
		return nil
	})
	found := &corev1.Namespace{}
	r.check(r.kube.Get(t.Context(), client.ObjectKey{Name: own}, found))
	if found.DeletionTimestamp != nil || len(r.listed(own)) != 1 {
		t.Errorf("the namespace with the history goes before the objects in the history: %v", r.listed(own))
	}
	r.check(r.kube.Patch(t.Context(), r.delivered("held"), client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))))
	r.eventually("the namespace goes", func() error {
		if err := r.kube.Get(t.Context(), client.ObjectKey{Name: own}, found); err == nil && found.DeletionTimestamp == nil {
			return errors.New("it is there")
		}
		return nil
	})
}
