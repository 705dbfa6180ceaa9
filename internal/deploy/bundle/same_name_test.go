package bundle

import (
	"fmt"
	"testing"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestLabelsThatWereRemovedReadInTheMessageOfTheState(t *testing.T) {
	r := newRig(t)
	r.start()
	labelled := func(name string) fleet.BundleResource {
		return file(name+".yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "+name+", labels: {team: web}}\ndata: {key: one}\n")
	}
	r.deploy("web", fleet.BundleDeploymentOptions{}, labelled("one"), labelled("all"), labelled("marks"))
	r.edit("one", `{"metadata":{"labels":{"team":null}}}`)
	r.edit("all", `{"metadata":{"labels":null}}`)
	r.edit("marks", `{"metadata":{"labels":null,"annotations":null}}`)
	object := "configmap.v1 " + r.target + "/"
	r.until("web", fleet.StateModified, object+`one modified {"metadata":{"labels":{"team":"web"}}}`,
		object+`all modified {"metadata":{"labels":{"app.kubernetes.io/managed-by":"Helm","objectset.rio.cattle.io/hash":"`,
		object+"marks not owned by us")
}

func TestOfTwoObjectsWithOneNameTheLaterIsDeployed(t *testing.T) {
	r := newRig(t)
	r.start()
	const pairs = 20
	var files []fleet.BundleResource
	for i := range pairs {
		name := fmt.Sprintf("c%02d", i)
		first, second := configMap(name, "first"), configMap(name, "second")
		first.Name, second.Name = "a"+first.Name, "b"+second.Name
		files = append(files, second, first)
	}
	found := r.deploy("web", fleet.BundleDeploymentOptions{}, files...)
	for i := range pairs {
		if key, err := r.data(fmt.Sprintf("c%02d", i)); key != "second" || err != nil {
			t.Errorf("pair %d has %q (%v)", i, key, err)
		}
	}
	if counts := found.Status.ResourceCounts; counts.Ready != pairs || counts.DesiredReady != pairs || len(found.Status.Resources) != pairs {
		t.Errorf("%d resources are counted as %+v", len(found.Status.Resources), counts)
	}
}

func TestAHookThatBecomesAnOrdinaryObjectOfItsReleaseIsTakenOver(t *testing.T) {
	r := newRig(t)
	r.start()
	const text = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\n"
	const hook = "  annotations: {helm.sh/hook: 'pre-install,pre-upgrade'}\n"
	r.deploy("web", fleet.BundleDeploymentOptions{}, chartOf(file("templates/a.yaml", text+hook+"data: {key: a}\n"))...)
	uid := r.uid(r.target, "settings")
	// Another Bundle does not get it.
	r.place("other", fleet.BundleDeploymentOptions{}, file("a.yaml", text+"data: {key: theirs}\n"))
	r.until("other", fleet.StateErrApplied, "ConfigMap "+r.target+"/settings", "belongs to Bundle web")

	r.place("web", fleet.BundleDeploymentOptions{}, chartOf(file("templates/a.yaml", text+"data: {key: b}\n"))...)
	r.untilData("settings", "b")
	r.until("web", fleet.StateReady)
	if is := r.uid(r.target, "settings"); is != uid {
		t.Error("it was replaced")
	}
	// It is compared and goes as what it is now.
	r.edit("settings", `{"data":{"key":"by hand"}}`)
	r.until("web", fleet.StateModified, "/settings modified")
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilGone(r.configMap("settings"))
}
