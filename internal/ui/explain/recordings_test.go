package explain

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	placement "github.com/muster-fleet/muster/api/placement/v1beta1"
)

// recorded returns objects produced by tests with a real hub, or a real agent, on localkube.
// CONTRIBUTING.md describes how to record more. Each file of testdata has the objects of one kind,
// by the reason for keeping them.
func recorded(t *testing.T) map[string]map[string]client.Object {
	t.Helper()
	all := map[string]map[string]client.Object{}
	for kind, empty := range map[string]func() client.Object{
		kindCluster:          func() client.Object { return &fleet.Cluster{} },
		kindMemberCluster:    func() client.Object { return &clusterv1beta1.MemberCluster{} },
		kindRequest:          func() client.Object { return &fleet.ClusterRegistration{} },
		kindToken:            func() client.Object { return &fleet.ClusterRegistrationToken{} },
		kindBundle:           func() client.Object { return &fleet.Bundle{} },
		kindBundleDeployment: func() client.Object { return &fleet.BundleDeployment{} },
		kindClusterPlacement: func() client.Object { return &placement.ClusterResourcePlacement{} },
		kindPlacement:        func() client.Object { return &placement.ResourcePlacement{} },
		kindWork:             func() client.Object { return &placement.Work{} },
		kindClusterRun:       func() client.Object { return &placement.ClusterStagedUpdateRun{} },
	} {
		text, err := os.ReadFile(filepath.Join("testdata", kind+".yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var byReason map[string]any
		if err := yaml.Unmarshal(text, &byReason); err != nil {
			t.Fatal(err)
		}
		all[kind] = map[string]client.Object{}
		for reason, content := range byReason {
			o := empty()
			text, err := yaml.Marshal(content)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(text, o); err != nil {
				t.Fatalf("%s %s: %v", kind, reason, err)
			}
			all[kind][reason] = o
		}
	}
	return all
}

// causeOf returns the cause that a kind of object has a reason for.
func causeOf(kind, reason string) (cause, bool) {
	i := slices.IndexFunc(causes, func(c cause) bool { return slices.Contains(c.kinds, kind) && slices.Contains(c.reasons, reason) })
	if i < 0 {
		return cause{}, false
	}
	return causes[i], true
}

func TestTheCauseIsFoundInWhatARealHubSaid(t *testing.T) {
	for kind, objects := range recorded(t) {
		for reason, o := range objects {
			c, known := causeOf(kind, reason)
			if !known {
				t.Errorf("%s of a %s has no cause", reason, kind)
				continue
			}
			found := Of(o)
			i := slices.IndexFunc(found, func(f Finding) bool { return f.Reason == reason })
			if i < 0 {
				t.Errorf("%s of a %s is not found: %+v", reason, kind, found)
				continue
			}
			if f := found[i]; f.Means != c.refined(f.Problem).means || f.Remedy == "" || f.Aside != c.aside || !isEvidence(f, o) {
				t.Errorf("%s of a %s: found %+v", reason, kind, f)
			}
			for _, before := range found[:i] {
				if before.Means == "" || before.Aside && !c.aside {
					t.Errorf("%s of a %s comes after %+v", reason, kind, before)
				}
			}
		}
	}
}

// isEvidence reports whether a finding names its object, and has the object's own message about the
// reason.
func isEvidence(f Finding, o client.Object) bool {
	names := strings.HasSuffix(f.Object(), o.GetName()) && f.Namespace == o.GetNamespace()
	if f.Reason == reasonNew { // no hub or agent has reported anything yet
		return names
	}
	return names && f.Message != "" && !f.Since.IsZero()
}

// TestEachReasonIsOneThatARealHubSaid fails for a cause without a recording, unless the variable
// unrecorded lists it as too costly to record.
func TestEachReasonIsOneThatARealHubSaid(t *testing.T) {
	objects, listed := recorded(t), map[string]bool{}
	for _, u := range unrecorded {
		for _, reason := range strings.Fields(u.reasons) {
			listed[u.kind+" "+reason] = false
		}
	}
	count := 0
	for _, c := range causes {
		for _, reason := range c.reasons {
			has := slices.ContainsFunc(c.kinds, func(kind string) bool { return objects[kind][reason] != nil })
			key := c.kinds[0] + " " + reason
			_, excused := listed[key]
			switch {
			case has && excused:
				t.Errorf("%s is recorded, and listed as what cannot be", key)
			case !has && !excused:
				t.Errorf("%s is not recorded", key)
			case has:
				count++
			}
			delete(listed, key)
		}
	}
	for key := range listed {
		t.Errorf("%s is listed as what cannot be recorded, and has no cause", key)
	}
	t.Logf("%d reasons are recorded", count)
}
