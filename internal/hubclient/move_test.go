package hubclient

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/utils/clock"
)

// at is a session with the fake hub at a path.
func (h *fakeHub) at(t *testing.T, path string) *Session {
	t.Helper()
	session, err := NewSession(Credential{
		Server: h.URL + path, CA: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}),
		Token: "t0ken", MemberNamespace: "m", Workspace: "clusters", Cluster: "c",
	}, Trust{Mode: TLSStrict, Settings: settings}, clock.RealClock{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(session.Close)
	return session
}

func TestAMovedSessionGoesByTheNewRouteWithTheNewestToken(t *testing.T) {
	const resource = "/apis/cluster.kubernetes-fleet.io/v1beta1/namespaces/m/internalmemberclusters/c"
	for _, c := range []struct{ name, from, to string }{
		{"from host to host", "", ""},
		{"to a path", "", "/k8s/clusters/local"},
		{"from a path", "/k8s/clusters/local", ""},
		{"from path to path", "/a", "/b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, after := newFakeHub(t, 200, report), newFakeHub(t, 200, report)
			session := before.at(t, c.from)
			ask := func() {
				t.Helper()
				if err := session.Ask(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			ask()
			session.Move(after.at(t, c.to).Hub)
			session.SetToken("t1ken")
			ask()
			before.Close()
			ask()
			want := []string{"GET " + c.to + resource + " Bearer t1ken", "GET " + c.to + resource + " Bearer t1ken"}
			if diff := cmp.Diff(want, after.requests); diff != "" {
				t.Errorf("after the move (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff([]string{"GET " + c.from + resource + " Bearer t0ken"}, before.requests); diff != "" {
				t.Errorf("before it (-want +got):\n%s", diff)
			}
			if session.Server() != after.URL+c.to {
				t.Errorf("the session says that it is at %s", session.Server())
			}
		})
	}
}

func TestAMovedSessionDoesNotShowItsTokenToAThirdHost(t *testing.T) {
	third := newFakeHub(t, 200, report)
	before, after := newFakeHub(t, 200, report), newFakeHub(t, 307, "-> "+third.URL+"/x")
	session := before.at(t, "")
	session.Move(after.at(t, "").Hub)
	_ = session.Ask(t.Context()) // what counts is who was shown what
	if len(after.requests) != 1 || len(third.requests) != 1 || strings.Contains(third.requests[0], "t0ken") {
		t.Errorf("the new host got %q, the third %q", after.requests, third.requests)
	}
}
