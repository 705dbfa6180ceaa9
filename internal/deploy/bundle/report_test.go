package bundle

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	contents "github.com/muster-fleet/muster/internal/delivery"
	"github.com/muster-fleet/muster/internal/fleet/reasons"
	"github.com/muster-fleet/muster/internal/kube"
)

func TestUnmetDependenciesAreAWaitThatNamesThemAll(t *testing.T) {
	r := newRig(t)
	r.start()
	r.placeWith("after", func(spec *fleet.BundleDeploymentSpec) {
		spec.DependsOn = []fleet.BundleRef{{Name: "base"}, {Name: "more"}}
	},
		fleet.BundleDeploymentOptions{}, configMap("after", "one"))
	found := r.until("after", fleet.StateWaitingForDependency, "Bundle base", "Bundle more")
	deployed := kube.FindCondition(found.Status.Conditions, fleet.ConditionDeployed)
	if deployed == nil || deployed.Status != corev1.ConditionUnknown {
		t.Errorf("the conditions are %+v", found.Status.Conditions)
	}
	r.place("base", fleet.BundleDeploymentOptions{}, configMap("base", "one"))
	r.place("more", fleet.BundleDeploymentOptions{}, configMap("more", "one"))
	r.until("after", fleet.StateReady)
}

func TestOutsideOfItsWindowNothingChangesExceptForARemoval(t *testing.T) {
	r := newRig(t)
	r.start()
	correct := fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}}
	r.place("web", correct, configMap("web", "one"))
	before := r.until("web", fleet.StateReady)
	off := func(spec *fleet.BundleDeploymentSpec) { spec.OffSchedule = true }
	r.placeWith("web", off, correct, configMap("web", "two"))
	r.eventually("it says why", func() error {
		if c := kube.FindCondition(r.get("web").Status.Conditions, fleet.ConditionMonitored); c == nil || c.Reason != "OutsideWindow" {
			return fmt.Errorf("the condition is %+v", c)
		}
		return nil
	})
	r.deploy("other", fleet.BundleDeploymentOptions{}, configMap("other", "one")) // the agent had the time
	applied := r.get("web").Status.AppliedDeploymentID
	if data, err := r.data("web"); err != nil || data != "one" || applied != before.Status.AppliedDeploymentID {
		t.Errorf("it was changed outside of its window: %s, %v", data, err)
	}
	r.placeWith("web", func(spec *fleet.BundleDeploymentSpec) { spec.OffSchedule = false }, correct, configMap("web", "two"))
	r.until("web", fleet.StateReady)
	if data, err := r.data("web"); err != nil || data != "two" {
		t.Errorf("its window opened, and it is %s, %v", data, err)
	}
	closed := r.placeWith("web", off, correct, configMap("web", "two"))
	r.check(r.kube.Delete(t.Context(), closed))
	r.eventually("the release is gone", func() error {
		if _, err := r.data("web"); !apierrors.IsNotFound(err) {
			return fmt.Errorf("its ConfigMap is still there: %w", err)
		}
		return nil
	})
}

func TestAReportHasItsDisplayAndADisplayAloneIsLeftToTheHub(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	found := r.until("web", fleet.StateReady)
	if diff := cmp.Diff(fleet.BundleDeploymentDisplay{Deployed: "True", Monitored: "True", State: "Ready"}, found.Status.Display); diff != "" {
		t.Errorf("the first report (-want +got):\n%s", diff)
	}
	ofHub := fleet.BundleDeploymentDisplay{Deployed: "True", Monitored: "Unknown: the cluster is lost", State: "NotReady"}
	found.Status.Display = ofHub
	r.check(r.kube.Status().Update(t.Context(), found))
	r.deploy("other", fleet.BundleDeploymentOptions{}, configMap("other", "one")) // the agent had the time
	if diff := cmp.Diff(ofHub, r.get("web").Status.Display); diff != "" {
		t.Errorf("without a change of its cluster (-want +got):\n%s", diff)
	}
	r.check(r.kube.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: "foreign"}}))
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"), configMap("foreign", "two"))
	shown := r.until("web", fleet.StateErrApplied, "foreign").Status.Display
	if shown.State != "ErrApplied" || shown.Monitored == ofHub.Monitored || strings.Contains(shown.Deployed, "lost") {
		t.Errorf("a failed deployment shows %+v", shown)
	}
}

func TestWhatIsDeployedStaysDeployedWhenAnObjectOfTheNextRevisionIsAnothers(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "one"))
	before := r.until("web", fleet.StateReady)
	r.check(r.kube.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.target, Name: "theirs"}}))
	r.place("web", fleet.BundleDeploymentOptions{}, configMap("web", "two"), configMap("theirs", "two"))
	found := r.until("web", fleet.StateErrApplied, "theirs", "belongs to no release", "takeOwnership")
	deployed, installed := kube.FindCondition(found.Status.Conditions, fleet.ConditionDeployed),
		kube.FindCondition(found.Status.Conditions, fleet.ConditionInstalled)
	if deployed.Status != corev1.ConditionTrue || installed.Status != corev1.ConditionFalse ||
		found.Status.AppliedDeploymentID != before.Status.AppliedDeploymentID {
		t.Errorf("status is %+v", found.Status)
	}
}

func TestAnAttemptThatIsRefusedLeavesDeployedWhatWas(t *testing.T) {
	deploying := kube.Condition(fleet.ConditionDeployed, false, string(Deploying), "it took so long that this was said")
	deploying.Status = corev1.ConditionUnknown
	o := observation{deployment: &fleet.BundleDeployment{}, observed: observed{found: true, failure: failure{reason: reasons.ObjectConflict}}}
	o.deployment.Status.Conditions = []fleet.Condition{deploying}
	o.release.Deployed = true
	status := statusOf(decision{State: Failed, Reason: "theirs belongs to no release"}, o, time.Unix(0, 0))
	if deployed := kube.FindCondition(status.Conditions, fleet.ConditionDeployed); deployed.Status != corev1.ConditionTrue ||
		deployed.Reason != reasons.Deployed {
		t.Errorf("the condition Deployed is %+v", deployed)
	}
}

// The hub notes with another deployment ID which error the status has; the agent that fails again
// in the same way has to say so anew.
func TestTheSameErrorOfAnotherDeploymentIDIsToldAnew(t *testing.T) {
	r := newRig(t)
	r.start()
	r.place("web", fleet.BundleDeploymentOptions{}, file("Chart.yaml", "apiVersion: v2\nname: web\n"))
	failed := r.until("web", fleet.StateErrApplied)
	noted, err := contents.ErrorDigest(failed)
	r.check(err)
	// The error says when it was reported with the precision of a second.
	r.eventually("the clock goes on", func() error {
		if kube.FindCondition(failed.Status.Conditions,
			fleet.ConditionDeployed).LastUpdateTime == metav1.Now().UTC().Format("2006-01-02T15:04:05Z07:00") {
			return fmt.Errorf("it is the same second")
		}
		return nil
	})
	r.check(r.kube.Patch(t.Context(), failed, client.RawPatch("application/merge-patch+json",
		[]byte(fmt.Sprintf(`{"metadata":{"annotations":{%q:%q}}}`, fleet.AnnotationEarlierError, noted)))))
	if contents.Failed(r.get("web")) {
		t.Fatal("the error is noted and counts")
	}
	r.place("web", fleet.BundleDeploymentOptions{DefaultNamespace: r.target + "-2"}, file("Chart.yaml", "apiVersion: v2\nname: web\n"))
	r.until("web", fleet.StateErrApplied)
}
