package cluster

import (
	"strings"
	"testing"
)

func TestApproval(t *testing.T) {
	for _, c := range []struct {
		name       string
		required   bool
		annotation string
		delivered  bool
		want       approval
	}{
		{"where nobody asks, nobody has to approve", false, "", false, approvalUnneeded},
		{"not even what was denied", false, "false", true, approvalUnneeded},
		{"a new Cluster waits", true, "", false, approvalAwaited},
		{"an approved one does not", true, "true", false, approvalGiven},
		{"one to which something was delivered before goes on", true, "", true, approvalInherited},
		{"unless somebody says that it should get nothing new", true, "false", true, approvalAwaited},
		{"what is neither true nor false approves nothing", true, "yes", false, approvalAwaited},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := decideApproval(c.required, c.annotation, c.delivered); got != c.want {
				t.Errorf("it is %q, want %q", got, c.want)
			}
		})
	}
}

func TestADeniedClusterDoesNotWait(t *testing.T) {
	var o observed
	o.Workspace, o.Name = "team", "web"
	if got := o.awaitsApproval(); !strings.HasPrefix(got, "this Cluster waits for approval, as label ") {
		t.Errorf("a new Cluster says: %s", got)
	}
	o.denied, o.deniedBecause = true, " (not of this team)"
	const want = "an approver has denied new deliveries to this Cluster (not of this team); to approve it: muster approve clusters team/web, "
	if got := o.awaitsApproval(); !strings.HasPrefix(got, want) {
		t.Errorf("a denied one says: %s", got)
	}
}
