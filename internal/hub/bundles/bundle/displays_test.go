package bundle

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestTheHubWaitsForTheFirstReportAboutEachVersion(t *testing.T) {
	created, sent := time.Unix(1_700_000_000, 0), time.Unix(1_700_000_100, 0)
	reported := fleet.BundleDeploymentStatus{
		AppliedDeploymentID: "s-1:1", Ready: true, NonModified: true, Conditions: []fleet.Condition{{Type: fleet.ConditionReady, Status: "True"}},
	}
	for name, row := range map[string]struct {
		id     string
		status fleet.BundleDeploymentStatus
		sent   bool
		want   time.Time
	}{
		"a new deployment":             {"s-1:1", fleet.BundleDeploymentStatus{}, true, created},
		"a new version":                {"s-2:1", reported, true, sent},
		"a new version of another hub": {"s-2:1", reported, false, time.Time{}},
		"a reported version":           {"s-1:1", reported, true, time.Time{}},
	} {
		d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{UID: "1", CreationTimestamp: metav1.NewTime(created)}, Status: row.status}
		d.Spec.DeploymentID, d.Spec.StagedDeploymentID = row.id, row.id
		c := &Controller{}
		if row.sent {
			c.sent.Set(d.UID, sent)
		}
		if got := c.awaitedSince(d); !got.Equal(row.want) {
			t.Errorf("%s: it waits since %s, want %s", name, got, row.want)
		}
	}
}

func TestManyAgentsHaveMoreTimeForTheirFirstReports(t *testing.T) {
	for _, c := range []struct {
		deployments int
		ofAgent     bool
		want        time.Duration
	}{
		{1, false, 2020 * time.Millisecond},
		{1000, false, 22 * time.Second},
		{10000, false, 30 * time.Second},
		{1, true, 30 * time.Second},
	} {
		if got := reportsWithin(c.deployments, c.ofAgent); got != c.want {
			t.Errorf("%d deployments, of an agent %v: %s, want %s", c.deployments, c.ofAgent, got, c.want)
		}
	}
}
