package settings

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

func TestASinkIsReadWhole(t *testing.T) {
	ca, err := json.Marshal(testCA)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(`{"notifications":[{"name":"chat","url":"https://gate.example/muster?team=a","secretName":"chat-key",
		"reasons":["Lost","AgentUpdated"],"workspaces":["clusters"],"caBundle":` + string(ca) + `},
		{"name":"own","url":"http://127.0.0.1:8080","secretName":"own-key","allowLoopback":true}]}`)
	want := []Sink{{
		Name: "chat", URL: "https://gate.example/muster?team=a", SecretName: "chat-key", CABundle: testCA, Workspaces: []string{"clusters"},
		Reasons: []clusterv1beta1.HistoryReason{clusterv1beta1.HistoryLost, clusterv1beta1.HistoryAgentUpdated},
	}, {Name: "own", URL: "http://127.0.0.1:8080", SecretName: "own-key", AllowLoopback: true}}
	if diff := cmp.Diff(want, got.Notifications); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, row := range []struct {
		sink      int
		reason    clusterv1beta1.HistoryReason
		workspace string
		want      bool
	}{
		{0, clusterv1beta1.HistoryLost, "clusters", true},
		{0, clusterv1beta1.HistoryBack, "clusters", false},
		{0, clusterv1beta1.HistoryLost, "others", false},
		{0, clusterv1beta1.HistoryLost, "", false}, // a MemberCluster
		{1, clusterv1beta1.HistoryBack, "others", true},
		{1, clusterv1beta1.HistoryLost, "", true},
	} {
		if wants := got.Notifications[row.sink].Wants(row.reason, row.workspace); wants != row.want {
			t.Errorf("%+v: %t", row, wants)
		}
	}
}

func TestAWrongSinkIsNamedWithoutItsURL(t *testing.T) {
	many := strings.TrimSuffix(strings.Repeat(`{"name":"a","url":"https://a","secretName":"a"},`, 17), ",")
	for name, row := range map[string]struct{ sinks, says string }{
		"an unknown reason": {
			`{"name":"a","url":"https://s3cret","secretName":"a","reasons":["Lots"]}`,
			`"Lots", which is no change of a member: want some of ApprovalRequired, `,
		},
		"http without a host":  {`{"name":"a","url":"http:///s3cret","secretName":"a"}`, `notifications "a": url names no host`},
		"another scheme":       {`{"name":"a","url":"ftp://s3cret","secretName":"a"}`, "url has no scheme https or http"},
		"no URL":               {`{"name":"a","secretName":"a"}`, "url has no scheme https or http"},
		"a URL that is none":   {`{"name":"a","url":"https://s3cret:port","secretName":"a"}`, "url is no valid URL"},
		"a password":           {`{"name":"a","url":"https://u:s3cret@host","secretName":"a"}`, "a user or a password"},
		"a fragment":           {`{"name":"a","url":"https://host/#s3cret","secretName":"a"}`, "a part after #"},
		"a loopback address":   {`{"name":"a","url":"https://[::1]/s3cret","secretName":"a"}`, "allowLoopback permits that"},
		"the metadata service": {`{"name":"a","url":"http://169.254.169.254/s3cret","secretName":"a","allowLoopback":true}`, "link-local"},
		"no Secret":            {`{"name":"a","url":"https://s3cret"}`, "want the name of a Secret in the hub's namespace"},
		"no name":              {`{"url":"https://s3cret","secretName":"a"}`, "notifications[0].name"},
		"a name twice": {
			`{"name":"a","url":"https://s3cret","secretName":"a"},{"name":"a","url":"https://b","secretName":"a"}`,
			"is taken by an entry before it",
		},
		"a wrong workspace": {`{"name":"a","url":"https://s3cret","secretName":"a","workspaces":["A b"]}`, `workspaces has "A b"`},
		"a wrong CA":        {`{"name":"a","url":"https://s3cret","secretName":"a","caBundle":"x"}`, "caBundle: "},
		"too many":          {many, "want at most 16"},
	} {
		_, err := Parse(fmt.Sprintf(`{"notifications":[%s]}`, row.sinks))
		if err == nil || !strings.Contains(err.Error(), row.says) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
