package term

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	clusterv1beta1 "github.com/muster-fleet/muster/api/cluster/v1beta1"
)

// hub returns an identity with a term.
func hub(t *testing.T, number int64) Identity {
	t.Helper()
	i, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	i.Term = number
	return i
}

func forged(of *clusterv1beta1.HubTerm, number int64) *clusterv1beta1.HubTerm {
	f := of.DeepCopy()
	f.Term = number
	return f
}

func TestAMemberObeysTheHigherTermOfItsHub(t *testing.T) {
	own, other := hub(t, 3), hub(t, 9)
	at := func(number int64, cluster string) *clusterv1beta1.HubTerm { return Sign(own.key, number, cluster) }
	for name, row := range map[string]struct {
		obeyed, offered *clusterv1beta1.HubTerm
		refusal         string
		adopts          bool
	}{
		"the first hub":                          {nil, at(3, "a"), "", true},
		"a hub of an earlier version":            {at(3, "a"), nil, "", false},
		"a hub of an earlier version, the first": {nil, nil, "", false},
		"the same hub":                           {at(3, "a"), at(3, "a"), "", false},
		"the same hub, promoted":                 {at(3, "a"), at(4, "a"), "", true},
		"the restored hub":                       {at(3, "a"), at(4, "b"), "", true},
		"the old hub that comes back":            {at(4, "b"), at(3, "a"), "has term 3, and this cluster obeys term 4", false},
		"a second restore of the same backup":    {at(4, "b"), at(4, "c"), "has term 4, and this cluster obeys term 4", false},
		"the hub of another fleet":               {at(4, "b"), other.On("d"), "", true},
		"a term that the hub has not signed":     {at(3, "a"), forged(at(3, "a"), 4), "no valid signature", false},
		"the same, as the first":                 {nil, forged(at(3, "a"), 4), "", false},
	} {
		if got := Refusal(row.obeyed, row.offered); (got == "") != (row.refusal == "") || !strings.Contains(got, row.refusal) {
			t.Errorf("%s: refusal %q, want %q", name, got, row.refusal)
		}
		if got := Adopts(row.obeyed, row.offered); got != row.adopts {
			t.Errorf("%s: adopts %t", name, got)
		}
	}
}

func TestOnlyASignedHigherTermOfItsOwnKeyStopsAHub(t *testing.T) {
	own := hub(t, 3)
	at := func(number int64, cluster string) *clusterv1beta1.HubTerm { return Sign(own.key, number, cluster) }
	moved := at(5, "b")
	moved.Cluster = "c"
	for name, row := range map[string]struct {
		other          *clusterv1beta1.HubTerm
		claims, fences bool
	}{
		"none":                                   {nil, false, false},
		"its own":                                {at(3, "a"), false, false},
		"a lower one":                            {at(2, "b"), false, false},
		"a higher one":                           {at(4, "b"), true, true},
		"a higher one of its own cluster":        {at(4, "a"), true, true},
		"an equal one of another cluster":        {at(3, "b"), true, true},
		"a number that the hub has not signed":   {forged(at(3, "b"), 1<<60), true, false},
		"a cluster that the hub has not signed":  {moved, true, false},
		"a higher one with another hub's key":    {hub(t, 9).On("b"), false, false},
		"a key and a signature of no length":     {&clusterv1beta1.HubTerm{Term: 9, Cluster: "b"}, false, false},
		"the key of the hub without a signature": {&clusterv1beta1.HubTerm{Hub: at(3, "a").Hub, Term: 9, Cluster: "b"}, true, false},
	} {
		if got := Claims(row.other, own.On("a")); got != row.claims {
			t.Errorf("%s: claims %t", name, got)
		}
		if got := Fences(row.other, own.On("a")); got != row.fences {
			t.Errorf("%s: fences %t", name, got)
		}
	}
	if Fences(at(4, "b"), nil) {
		t.Error("a hub without a term is fenced")
	}
}

func TestAnIdentityIsStoredPromotedAndRestored(t *testing.T) {
	i := hub(t, 3)
	stored := func() Identity {
		t.Helper()
		read, err := FromSecret(i.Secret("system"))
		if err != nil || !read.SameKey(i) {
			t.Fatalf("the stored identity is %+v, %v", read, err)
		}
		return read
	}
	if read := stored(); read.Term != 3 || read.Stopped("a") != "" {
		t.Errorf("it has term %d: %s", read.Term, read.Stopped("a"))
	}
	i.InForce = 3
	if read := stored(); read.InForce != 3 || read.Promote(0).InForce != 3 {
		t.Errorf("term %d is in force, and %d after a promotion that the hub has not seen", read.InForce, read.Promote(0).InForce)
	}
	i.FencedBy = Sign(i.key, 7, "b")
	if why := stored().Stopped("a"); !strings.Contains(why, "it has term 3") || !strings.Contains(why, "has term 7") {
		t.Errorf("fenced: %q", why)
	}
	i = i.Promote(0)
	if read := stored(); read.Term != 8 || read.Stopped("a") != "" {
		t.Errorf("promoted: term %d: %s", read.Term, read.Stopped("a"))
	}
	i.Demoted = true
	if why := stored().Stopped("a"); !strings.Contains(why, "demoted at term 8") {
		t.Errorf("demoted: %q", why)
	}
	if i = i.Promote(11); stored().Term != 12 {
		t.Errorf("promoted above 11: term %d", i.Term)
	}
	restored, err := Restored(i.Seed(), 12)
	if err != nil || restored.Term != 13 || !restored.SameKey(i) || !Supersedes(restored.On("b"), i.On("a")) {
		t.Errorf("restored: term %d, %v", restored.Term, err)
	}
}

func TestASecretThatIsNoIdentityIsRefused(t *testing.T) {
	for name, change := range map[string]func(*corev1.Secret){
		"another type":                 func(s *corev1.Secret) { s.Type = corev1.SecretTypeOpaque },
		"no key":                       func(s *corev1.Secret) { delete(s.Data, keySeed) },
		"no term":                      func(s *corev1.Secret) { delete(s.Data, keyTerm) },
		"a term below 1":               func(s *corev1.Secret) { s.Data[keyTerm] = []byte("0") },
		"a proof that is none":         func(s *corev1.Secret) { s.Data[keyFencedBy] = []byte("{}") },
		"a proof without a signature":  func(s *corev1.Secret) { s.Data[keyFencedBy] = []byte(Encode(forged(hub(t, 3).On("a"), 4))) },
		"a proof of more than a KiB":   func(s *corev1.Secret) { s.Data[keyFencedBy] = []byte(strings.Repeat(" ", 2000)) },
		"a key of a different length":  func(s *corev1.Secret) { s.Data[keySeed] = []byte("short") },
		"a term that is not a number":  func(s *corev1.Secret) { s.Data[keyTerm] = []byte("x") },
		"a proof that is no JSON text": func(s *corev1.Secret) { s.Data[keyFencedBy] = []byte("x") },
	} {
		secret := hub(t, 3).Secret("system")
		change(secret)
		if _, err := FromSecret(secret); err == nil {
			t.Errorf("%s: it is read", name)
		}
	}
	if _, err := Restored([]byte("short"), 3); err == nil {
		t.Error("a short key is restored")
	}
	if _, err := Restored(hub(t, 3).Seed(), 0); err == nil {
		t.Error("a backup without a term is restored")
	}
}

// FuzzDecode reads terms from foreign clusters and reports.
func FuzzDecode(f *testing.F) {
	i, err := NewIdentity()
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range []string{"", "{}", `{"hub":"AA==","term":-1}`, Encode(i.On("a"))} {
		f.Add(seed)
	}
	own := i.On("own")
	f.Fuzz(func(t *testing.T, stored string) {
		decoded, err := Decode(stored)
		if err == nil && decoded.Term > 1 && Fences(decoded, own) {
			t.Errorf("%q fences a hub that has never signed it", stored)
		}
		if decoded != nil {
			_ = Refusal(own, decoded) + Name(decoded)
		}
	})
}
