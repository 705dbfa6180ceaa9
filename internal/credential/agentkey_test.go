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
	if _, err := ParseAgentKey([]byte("short")); err == nil {
		t.Error("a key of five bytes is accepted")
	}
}

func TestATokenIsSealedToOneKeyAndOneRenewal(t *testing.T) {
	key, err := NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAgentKey()
	if err != nil {
		t.Fatal(err)
	}
	renewal := Renewal{AccountUID: "u", Sequence: 2}
	sealed, err := SealTokens(key.Public(), renewal, Tokens{Token: "secret", Reconnect: "again"})
	if err != nil {
		t.Fatal(err)
	}
	if tokens, err := key.OpenTokens(renewal, sealed); err != nil || tokens != (Tokens{"secret", "again"}) {
		t.Errorf("opened %v, %v", tokens, err)
	}
	for name, open := range map[string]func() (Tokens, error){
		"another key":      func() (Tokens, error) { return other.OpenTokens(renewal, sealed) },
		"another sequence": func() (Tokens, error) { return key.OpenTokens(Renewal{"u", 3}, sealed) },
		"another account":  func() (Tokens, error) { return key.OpenTokens(Renewal{"v", 2}, sealed) },
		"a cut text":       func() (Tokens, error) { return key.OpenTokens(renewal, sealed[1:]) },
		"nothing":          func() (Tokens, error) { return key.OpenTokens(renewal, nil) },
	} {
		if tokens, err := open(); err == nil || tokens != (Tokens{}) {
			t.Errorf("%s opens it", name)
		}
	}
	weak := make([]byte, 32) // a point of small order, with which the shared secret is zero
	for name, public := range map[string][]byte{
		"short": key.Public()[1:], "no point": append(make([]byte, 31), 0xff), "weak": weak, "none": nil,
	} {
		if _, err := SealTokens(public, renewal, Tokens{Token: "secret"}); err == nil {
			t.Errorf("a key that is %s is sealed to", name)
		}
	}
}

// TestTheFingerprintOfAKeyNeverChanges has a golden vector: the hub stores fingerprints.
func TestTheFingerprintOfAKeyNeverChanges(t *testing.T) {
	if got := Fingerprint([]byte("public key of an agent")); got != "890130ebd262102a2891f57338584ed4" {
		t.Errorf("got %s", got)
	}
}
