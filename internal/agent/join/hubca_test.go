package join

import (
	"bytes"
	"testing"

	"k8s.io/utils/clock"

	"github.com/muster-fleet/muster/internal/credential"
	"github.com/muster-fleet/muster/internal/hubclient"
)

// TestOnlyAnAgentThatTrustsNobodyElseNamesTheCAOfItsHub tries each TLS mode. With other trusted
// CAs, an attacker in between may have shown a certificate of another authority.
func TestOnlyAnAgentThatTrustsNobodyElseNamesTheCAOfItsHub(t *testing.T) {
	ca, err := credential.ParseCA(localCA)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		mode hubclient.TLSMode
		ca   []byte
		want int
	}{
		{"strict", hubclient.TLSStrict, ca, 1},
		{"strict with the same CA twice", hubclient.TLSStrict, append(bytes.Clone(ca), ca...), 1},
		{"strict without a CA", hubclient.TLSStrict, nil, 0},
		{"with the CAs of the system", hubclient.TLSSystemStore, ca, 0},
		{"with whoever answers", hubclient.TLSInsecure, ca, 0},
	} {
		key, err := credential.NewAgentKey()
		if err != nil {
			t.Fatal(err)
		}
		answer, err := credential.NewAnswerKey()
		if err != nil {
			t.Fatal(err)
		}
		joiner := &Joiner{
			Bootstrap: Bootstrap{CA: c.ca, Workspace: "clusters", TokenName: "t"}, Config: Config{Mode: c.mode}, Key: &key, Clock: clock.RealClock{},
		}
		r := joiner.request("id", answer)
		if len(r.Spec.HubCAs) != c.want {
			t.Errorf("%s: it names %v", c.name, r.Spec.HubCAs)
		}
		claim := credential.Claim{
			Workspace: "clusters", ClientID: "id", Nonce: r.Spec.ClientRandom, Token: "t", AnswerKey: r.Spec.AnswerKey, HubCAs: r.Spec.HubCAs,
		}
		if err := credential.VerifyClaim(r.Spec.AgentKey, r.Spec.Signature, claim); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
		claim.HubCAs = []string{"another"}
		if credential.VerifyClaim(r.Spec.AgentKey, r.Spec.Signature, claim) == nil {
			t.Errorf("%s: the signature does not cover it", c.name)
		}
	}
}
