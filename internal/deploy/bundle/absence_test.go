package bundle

import (
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/deploy/applied"
	"github.com/muster-fleet/muster/internal/deploy/release"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	hubremoval "github.com/muster-fleet/muster/internal/hub/runtime/removal"
	"github.com/muster-fleet/muster/internal/testkube"
)

// uids returns the UIDs of ConfigMaps downstream.
func (r *rig) uids(names ...string) (all []types.UID) {
	r.t.Helper()
	for _, name := range names {
		found := &corev1.ConfigMap{}
		r.check(r.downstream.Client(r.t).Get(r.t.Context(), client.ObjectKey{Namespace: r.target, Name: name}, found))
		all = append(all, found.UID)
	}
	return all
}

// says waits until the deployer has logged all of that in one line.
func (r *rig) says(run *running, parts ...string) {
	r.t.Helper()
	r.eventually(fmt.Sprintf("it says %q", parts), func() error {
		return hasLine(run.lines(), parts...)
	})
}

// hasLine is nil if one line of a text has all parts.
func hasLine(text string, parts ...string) error {
	for line := range strings.Lines(text) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			return nil
		}
	}
	return fmt.Errorf("it said:\n%s", text)
}

func (r *rig) deleteCRD(name string) {
	r.t.Helper()
	crd := r.object(definitions, "", name)
	r.check(r.kube.Delete(r.t.Context(), crd))
	r.untilGone(crd)
}

func TestCRDOfBundleDeploymentsThatIsDeletedAndInstalledAgainLeavesEveryWorkloadWhereItIs(t *testing.T) {
	r := newRigAlone(t)
	r.pauses.Missing = time.Minute
	run := r.start()
	place := func() {
		r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
		r.place("db", fleet.BundleDeploymentOptions{}, configMap("db", "one"))
		r.until("web", fleet.StateReady)
		r.until("db", fleet.StateReady)
	}
	place()
	before := r.uids("web", "db")
	r.deleteCRD("bundledeployments.fleet.cattle.io")
	r.says(run, "Removal not confirmed", "release "+r.target+"/web:1 stays")
	r.says(run, "Removal not confirmed", "release "+r.target+"/db:1 stays")
	r.cluster.InstallCRDs(t)
	r.says(run, `"db"`, "Confirming")
	place()
	if after := r.uids("web", "db"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the objects are %v, and were %v", after, before)
	}
	for _, name := range []string{"web", "db"} {
		if found := r.get(name); !strings.HasSuffix(found.Status.Release, name+":1") {
			t.Errorf("it was deployed again: %s", found.Status.Release)
		}
	}
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.untilGone(r.configMap("web"))
}

func TestBundleDeploymentThatTheHubWritesAgainInTimeCostsNothingDownstream(t *testing.T) {
	r := newRig(t)
	r.pauses = Pauses{Watched: time.Minute, Missing: time.Minute}
	run := r.start()
	r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	before := r.uids("web")
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.says(run, `"web"`, `"to"="Confirming"`)
	found := r.deploy("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	if after := r.uids("web"); fmt.Sprint(after) != fmt.Sprint(before) || found.Status.Release != r.target+"/web:1" {
		t.Errorf("the objects are %v of release %s, and were %v", after, found.Status.Release, before)
	}
}

// gate is a way to the hub, which can be shut: then it serves no kinds of the fleet.
func (r *rig) gate() *atomic.Bool {
	r.t.Helper()
	target, err := url.Parse(r.cluster.Config.Host)
	r.check(err)
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(r.cluster.Config))
	r.check(err)
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) { p.SetURL(target) }, Transport: transport, FlushInterval: -1}
	shut := &atomic.Bool{}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if shut.Load() && strings.HasPrefix(request.URL.Path, "/apis/fleet.cattle.io/") {
			http.NotFound(w, request)
			return
		}
		proxy.ServeHTTP(w, request)
	}))
	r.t.Cleanup(server.CloseClientConnections)
	r.server, r.ca = server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return shut
}

func TestHubThatServesNoKindOfTheFleetTakesNothingAway(t *testing.T) {
	r := newRig(t)
	shut := r.gate()
	run := r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	r.place("db", fleet.BundleDeploymentOptions{}, configMap("db", "one"))
	r.until("web", fleet.StateReady)
	r.until("db", fleet.StateReady)
	before := r.uids("web")
	shut.Store(true)
	r.check(r.kube.Delete(t.Context(), r.get("web")))
	r.says(run, "Removal not confirmed", "web:1 stays")
	if after := r.uids("web"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the objects are %v, and were %v", after, before)
	}
	shut.Store(false)
	r.untilGone(r.configMap("web"))
}

// deployOn lets a rig deploy on another control plane than its hub, by the rig of a member there.
func (r *rig) deployOn(member *rig) {
	r.downstream, r.agent, r.target = member.cluster, member.agent, member.target
}

func TestReleaseThatARestoredHubDoesNotKnowIsKeptAndNamed(t *testing.T) {
	const hub = "restored-hub"
	member := newRig(t)
	r, away := newRigOn(t, hub), newRigOn(t, hub)
	r.deployOn(member)
	away.deployOn(newRigOn(t, shared))
	r.place("old", fleet.BundleDeploymentOptions{}, configMap("old", "one"))
	first, leaving := r.start(), away.start()
	r.until("old", fleet.StateReady)
	restore := testkube.Snapshot(t, hub)
	version := away.deploy("new", fleet.BundleDeploymentOptions{}, configMap("new", "one")).ResourceVersion
	leaving.stop()
	r.deploy("new", fleet.BundleDeploymentOptions{}, configMap("new", "one"))
	before, beforeAway := r.uids("old", "new"), away.uids("new")
	restore()
	r.says(first, `"new"`, `"to"="Kept"`)
	first.stop()
	for range 30 {
		r.place("grows", fleet.BundleDeploymentOptions{}, configMap("grows", time.Now().String()))
	}
	if now := r.get("grows").ResourceVersion; !applied.Older(version, now) {
		t.Fatalf("the restored hub is at version %s only, and was at %s", now, version)
	}
	second, back := r.start(), away.start()
	r.says(second, `"new"`, `"to"="Kept"`)
	away.says(back, `"new"`, `"to"="Kept"`)
	if after := away.uids("new"); fmt.Sprint(after) != fmt.Sprint(beforeAway) {
		t.Errorf("of the member that was away, the object is %v, and was %v", after, beforeAway)
	}
	r.until("grows", fleet.StateReady)
	r.until("old", fleet.StateReady)
	if after := r.uids("old", "new"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the objects are %v, and were %v", after, before)
	}
	r.deploy("new", fleet.BundleDeploymentOptions{}, configMap("new", "one"))
	if after := r.uids("new"); fmt.Sprint(after) != fmt.Sprint(before[1:]) {
		t.Errorf("the object is %v, and was %v", after, before[1:])
	}
	r.check(r.kube.Delete(t.Context(), r.get("new")))
	r.eventually("it is removed like any other after that", func() error {
		found := &corev1.ConfigMap{}
		if err := member.kube.Get(t.Context(), client.ObjectKey{Namespace: r.target, Name: "new"}, found); !apierrors.IsNotFound(err) {
			return fmt.Errorf("reading it: %v", err)
		}
		return nil
	})
}

// TestNoReleaseGoesBecauseTheHubForgotItsHistory restores the hub and has it forget all that was
// before. What it deleted itself is removed all the same.
func TestNoReleaseGoesBecauseTheHubForgotItsHistory(t *testing.T) {
	const hub = "forgetful-hub"
	member := newRig(t)
	r := newRigOn(t, hub)
	r.deployOn(member)
	run := r.start()
	for _, name := range []string{"deleted", "unmarked"} {
		r.deploy(name, fleet.BundleDeploymentOptions{}, configMap(name, "one"))
	}
	restore := testkube.Snapshot(t, hub)
	version := r.deploy("new", fleet.BundleDeploymentOptions{}, configMap("new", "one")).ResourceVersion
	run.stop()
	before := r.uids("new", "unmarked")

	restore()
	for _, name := range []string{"deleted", "unmarked"} {
		r.removeAsHubsDo(r.get(name), name == "deleted")
	}
	now := version
	for range 30 {
		now = r.place("grows", fleet.BundleDeploymentOptions{}, configMap("grows", time.Now().String())).ResourceVersion
	}
	revision, err := strconv.ParseInt(now, 10, 64)
	r.check(err)
	testkube.Compact(t, hub, revision)
	err = r.kube.List(t.Context(), &fleet.BundleDeploymentList{}, &client.ListOptions{Raw: &metav1.ListOptions{
		ResourceVersion: version, ResourceVersionMatch: metav1.ResourceVersionMatchExact}})
	if !applied.Older(version, now) || !apierrors.IsResourceExpired(err) {
		t.Fatalf("the hub is at version %s, was at %s, and lists that: %v", now, version, err)
	}
	run = r.start()
	member.untilGone(r.configMap("deleted"))
	for _, name := range []string{"new", "unmarked"} {
		r.says(run, "Removal not confirmed", "/"+name+":1 stays", "no trace of the deletion of the BundleDeployment")
	}
	r.blocked(run, reasons.RemovalUnconfirmed, "create the Bundle again; to remove the release, delete the Bundle after that")
	if after := r.uids("new", "unmarked"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("the objects are %v, and were %v", after, before)
	}
	found := r.deploy("new", fleet.BundleDeploymentOptions{}, configMap("new", "one"))
	if after := r.uids("new"); fmt.Sprint(after) != fmt.Sprint(before[:1]) {
		t.Errorf("the object is %v, and was %v", after, before[:1])
	}
	r.removeAsHubsDo(found, true)
	member.untilGone(r.configMap("new"))
}

// removeAsHubsDo deletes a BundleDeployment, which hubs before this version do without a record.
func (r *rig) removeAsHubsDo(d *fleet.BundleDeployment, recorded bool) {
	r.t.Helper()
	if recorded {
		r.check(hubremoval.Record(r.t.Context(), r.kube, r.kube, client.ObjectKeyFromObject(r.report), client.ObjectKeyFromObject(d), d.UID))
	}
	r.check(r.kube.Delete(r.t.Context(), d))
}

// TestWhatTheHubDoesNotHaveIsNotRecordedAsRemoved plays a hub that outlives a restore of its API
// server. The hub's cache has a BundleDeployment that no client has deleted.
func TestWhatTheHubDoesNotHaveIsNotRecordedAsRemoved(t *testing.T) {
	r := newRig(t)
	d := r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	recorded := func(uid types.UID) bool {
		t.Helper()
		r.check(hubremoval.Record(t.Context(), r.kube, r.kube, client.ObjectKeyFromObject(r.report), client.ObjectKeyFromObject(d), uid))
		var report clusterv1beta1.InternalMemberCluster
		r.check(r.kube.Get(t.Context(), client.ObjectKeyFromObject(r.report), &report))
		return slices.Contains(strings.Fields(report.Annotations[clusterv1beta1.AnnotationRemoved]), string(uid))
	}
	if recorded("another") {
		t.Error("one of the same name and another UID is recorded")
	}
	if !recorded(d.UID) {
		t.Error("the one that is there is not recorded")
	}
	again := r.place("again", fleet.BundleDeploymentOptions{}, configMap("again", "one"))
	r.check(r.kube.Delete(t.Context(), again))
	d = again
	if recorded(again.UID) {
		t.Error("one that is gone is recorded")
	}
}

func TestAReleaseIsNotTakenBackToAnOlderBundleDeploymentThatTheHubNoLongerHas(t *testing.T) {
	r := newRig(t)
	before := r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	now := r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"), configMap("more", "one"))
	d := &Deployer{Hub: r.hub()}
	of := &delivery{release: &release.Summary{Name: "web", Namespace: r.target, HubVersion: now.ResourceVersion}}
	for _, row := range []struct {
		told *fleet.BundleDeployment
		said string
	}{
		{before, "the hub has generation 2 of its BundleDeployment, and sent generation 1 to this agent"},
		{now, ""},
		// A hub that was restored has nothing newer than what it tells.
		{func() *fleet.BundleDeployment { is := now.DeepCopy(); is.ResourceVersion = "1"; return is }(), ""},
	} {
		if err := d.confirmNewest(t.Context(), of, row.told); (err == nil) != (row.said == "") ||
			err != nil && !strings.Contains(err.Error(), row.said) {
			t.Errorf("told of version %s: %v", row.told.ResourceVersion, err)
		}
	}
	r.check(r.kube.Delete(t.Context(), now))
	if err := d.confirmNewest(t.Context(), of, before); err == nil || !strings.Contains(err.Error(), "stays as it is until the hub confirms") {
		t.Errorf("told of one that is gone: %v", err)
	}
}

// TestAReleaseThatFailedNamesItsBundleDeployment: the hub lists what it removes by UID, and keeps
// other proofs for minutes only.
func TestAReleaseThatFailedNamesItsBundleDeployment(t *testing.T) {
	r := newRig(t)
	run := r.start()
	broken := file("broken.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: missing-"+r.target+"}\n")
	named := func(d *fleet.BundleDeployment) {
		t.Helper()
		var histories corev1.SecretList
		r.check(r.kube.List(t.Context(), &histories, client.InNamespace(r.target), client.MatchingLabels{"owner": "helm", "name": d.Name}))
		for _, revision := range histories.Items {
			if uid := revision.Labels["muster/hub-uid"]; uid != string(d.UID) {
				t.Errorf("%s is of BundleDeployment %q, want %s", revision.Name, uid, d.UID)
			}
		}
		if len(histories.Items) == 0 {
			t.Errorf("release %s has no history", d.Name)
		}
	}
	r.place("new", fleet.BundleDeploymentOptions{}, broken)
	r.deploy("old", fleet.BundleDeploymentOptions{}, configMap("old", "one"))
	r.place("old", fleet.BundleDeploymentOptions{}, configMap("old", "one"), broken)
	for _, name := range []string{"new", "old"} {
		d := r.until(name, fleet.StateErrApplied)
		named(d)
		r.removeAsHubsDo(d, true)
		r.untilRemoved(run, name)
	}
}
