package credential

import "testing"

func TestASignatureIsOfOneRequestAndOneKey(t *testing.T) {
	key, err := NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseAgentKey(key.Seed())
	if err != nil {
		t.Fatal(err)
	}
	claim := Claim{Workspace: "clusters", ClientID: "id", Nonce: "n", Token: "t", AnswerKey: []byte("k"), HubCAs: []string{"a", "b"}}
	signature := again.Sign(claim)
	if err := VerifyClaim(key.Public(), signature, claim); err != nil {
		t.Errorf("a key that was stored signs otherwise: %v", err)
	}
	other, err := NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		public, signature []byte
		claim             Claim
	}{
		"another key":         {other.Public(), signature, claim},
		"a key that is short": {key.Public()[1:], signature, claim},
		"no signature":        {key.Public(), nil, claim},
		"a cut signature":     {key.Public(), signature[1:], claim},
		"another workspace":   {key.Public(), signature, Claim{"other", "id", "n", "t", []byte("k"), []string{"a", "b"}}},
		"another client ID":   {key.Public(), signature, Claim{"clusters", "x", "n", "t", []byte("k"), []string{"a", "b"}}},
		"another nonce":       {key.Public(), signature, Claim{"clusters", "id", "x", "t", []byte("k"), []string{"a", "b"}}},
		"another token":       {key.Public(), signature, Claim{"clusters", "id", "n", "x", []byte("k"), []string{"a", "b"}}},
		"another answer key":  {key.Public(), signature, Claim{"clusters", "id", "n", "t", []byte("x"), []string{"a", "b"}}},
		"another hub":         {key.Public(), signature, Claim{"clusters", "id", "n", "t", []byte("k"), []string{"a"}}},
		"any hub":             {key.Public(), signature, Claim{"clusters", "id", "n", "t", []byte("k"), nil}},
		"fields run together": {key.Public(), signature, Claim{"clustersid", "", "n", "t", []byte("k"), []string{"a", "b"}}},
	} {
		if VerifyClaim(c.public, c.signature, c.claim) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if a, b := Fingerprint(key.Public()), Fingerprint(other.Public()); a == b || len(a) != 32 {
		t.Errorf("fingerprints are %s and %s", a, b)
	}
	for text, want := range map[string]bool{Fingerprint(key.Public()): true, "": false, "x": false, Fingerprint(key.Public()) + "\n": false} {
		if IsFingerprint(text) != want {
			t.Errorf("%q may be a fingerprint: %t, want %t", text, !want, want)
		}
	}
	if _, err := ParseAgentKey([]byte("short")); err == nil {
		t.Error("a key of five bytes is accepted")
	}
}
