package hubclient

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAddressesAreStoredWithTheCredential(t *testing.T) {
	known := Addresses{List: []Address{{Server: "https://one"}, {Server: "https://two"}}, AfterSeconds: 90, Report: "uid"}
	stored := Credential{Server: "https://two", Token: "t", MemberNamespace: "m", Workspace: "w", Cluster: "c", Addresses: known}
	secret, err := stored.Secret("ns")
	if err != nil {
		t.Fatal(err)
	}
	read, err := CredentialFromSecret(secret)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(known, read.Addresses); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for server, want := range map[string]int{"https://one": 0, "https://two": 1, "https://other": 0} {
		if got := known.Fallback(server); got != want {
			t.Errorf("%s is fallback %d, want %d", server, got, want)
		}
	}
	if known.After() != 90*time.Second || (Addresses{}).After() != time.Minute {
		t.Errorf("the waits are %s and %s", known.After(), Addresses{}.After())
	}
}

func TestUnreadableAddressesCountAsNone(t *testing.T) {
	for name, stored := range map[string]string{
		"no JSON": "{", "a URL without TLS": `{"list":[{"server":"http://one"}]}`,
		"a URL in another form": `{"list":[{"server":"https://one/"}]}`,
		"a CA that is none":     `{"list":[{"server":"https://one","ca":"aGVsbG8="}]}`, "nothing": "",
	} {
		if got := ParseAddresses([]byte(stored)); got.Encode() != nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
