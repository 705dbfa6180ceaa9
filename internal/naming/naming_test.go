package naming

import (
	"strings"
	"testing"
)

const uid = "6f7c6d1e-7f3b-4a53-9d3e-0a1b2c3d4e5f"

// TestGoldenVectors holds values computed with the upstream system (wire facts, golden vectors).
func TestGoldenVectors(t *testing.T) {
	importAccount := TokenServiceAccount("import-token-my-cluster", uid)
	for _, c := range []struct{ name, got, want string }{
		{"credential secret", CredentialSecret("really-random", "r4nd0m"), "c-5972a14060084785f480feae2f4cfa5f8ee791db1fb0fb96b40a934b95a0b"},
		{"credential secret has no separator", CredentialSecret("really-randomr4", "nd0m"),
			"c-5972a14060084785f480feae2f4cfa5f8ee791db1fb0fb96b40a934b95a0b"},
		{"key hash", KeyHash("really-random"), "08f9d8eb5b7d"},
		{"cluster of a kube-system UID", Cluster(uid), "cluster-567e4f20bde8"},
		{"member namespace", MemberNamespace("clusters", "my-cluster"), "cluster-clusters-my-cluster-bfd14deb5a00"},
		{"member namespace of another workspace", MemberNamespace("fleet-default", "second"), "cluster-fleet-default-second-8923747ebd45"},
		{"member namespace of the hub itself", MemberNamespace("fleet-local", "local"), "cluster-fleet-local-local-1a3d67d0a899"},
		{"member namespace of a long name", MemberNamespace("clusters", "a-very-long-cluster-name-that-goes-on-and-on-for-ever-and-ever"),
			"cluster-clusters-a-very-long-cluster-name-that-goes-on-an-ac747"},
		{"member namespace of a MemberCluster", MemberClusterNamespace("member-1"), "fleet-member-member-1"},
		{"role of a MemberCluster", MemberClusterRole("member-1"), "fleet-role-member-1"},
		{"role binding of a MemberCluster", MemberClusterRoleBinding("member-1"), "fleet-rolebinding-member-1"},
		{"token account", TokenServiceAccount("new-token", "U"), "new-token-U"},
		{"import account", TokenServiceAccount("import-token-my-cluster", "U"), "import-token-my-cluster-U"},
		{"import account role", SafeConcat(importAccount, "role"), "import-token-my-cluster-6f7c6d1e-7f3b-4a53-9d3e-0a1b2c3d4-e8d14"},
		{"import account role binding", SafeConcat(importAccount, "to", "role"),
			"import-token-my-cluster-6f7c6d1e-7f3b-4a53-9d3e-0a1b2c3d4-91c4a"},
		{"registration namespace", RegistrationNamespace("cattle-fleet-system"), "cattle-fleet-clusters-system"},
		{"registration namespace without suffix", RegistrationNamespace("my-fleet"), "my-fleet-clusters-system"},
		{"registration namespace with suffix inside", RegistrationNamespace("foo-system-bar"), "foo-clusters-system-bar"},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, c.got, c.want)
		}
	}
}

func TestNoTwoListsOfPartsHaveOneDigest(t *testing.T) {
	if one, other := DigestOfParts("a", "bc")[:16],
		DigestOfParts([]byte("ab"), []byte("c"))[:16]; one != "fa19a6c0df56998a" || other != "115323e562c4a4fd" {
		t.Errorf("got %s and %s, want those of ever: members keep such digests", one, other)
	}
}

func TestSafeConcatNeverDoublesTheDash(t *testing.T) {
	got := SafeConcat(strings.Repeat("a", 56)+"-", "tail-that-is-too-long")
	if len(got) > 63 || strings.Contains(got, "--") {
		t.Errorf("got %q (%d characters)", got, len(got))
	}
}

func TestEachEpochOfAMemberHasANamespaceOfItsOwn(t *testing.T) {
	long, seen := strings.Repeat("x", 120), map[string]string{}
	for epoch := range 3 {
		for _, name := range []string{
			MemberNamespaceAt(epoch, "clusters", "web"), MemberNamespaceAt(epoch, "clusters", long), MemberNamespaceAt(epoch, long[:63], "web"),
			MemberClusterNamespaceAt(epoch, "web"), MemberClusterNamespaceAt(epoch, long[:MaxMemberClusterName]),
		} {
			if before, known := seen[name]; known || len(name) > 63 {
				t.Errorf("namespace %q (%d characters) is that of %s, too", name, len(name), before)
			}
			seen[name] = name
		}
	}
	for got, want := range map[string]string{
		MemberNamespaceAt(0, "clusters", "my-cluster"): "cluster-clusters-my-cluster-bfd14deb5a00",
		MemberNamespaceAt(1, "clusters", "my-cluster"): "cluster-clusters-my-cluster-0e6725db38a9",
		MemberClusterNamespaceAt(0, "member-1"):        "fleet-member-member-1",
		MemberClusterNamespaceAt(1, "member-1"):        "fleet-member-member-1-7bddadd883fb",
	} {
		if got != want {
			t.Errorf("got %q, want %q, as ever", got, want)
		}
	}
}

func TestKeyHashReadsTheFirstHundredCharacters(t *testing.T) {
	head := strings.Repeat("x", 100)
	if KeyHash(head+"1") != KeyHash(head+"2") {
		t.Error("strings that differ after 100 characters have different hashes")
	}
}

func TestClusterProfile(t *testing.T) {
	long := strings.Repeat("a", 237) + "-.bcdefghijklmno" // a Cluster's name may have 253 characters
	for _, c := range []struct{ name, got, want string }{
		{"of a MemberCluster", ClusterProfile("", "member-1"), "member-1"},
		{"of a Cluster", ClusterProfile("clusters", "my-cluster"), "clusters.my-cluster"},
		{"of a Cluster with dots", ClusterProfile("clusters", "a.b"), "clusters.a.b"},
		{"that just fits", ClusterProfile("w", strings.Repeat("a", 251)), "w." + strings.Repeat("a", 251)},
		{"that is too long", ClusterProfile("ws", long), "ws." + strings.Repeat("a", 237) + "-4715fb72a2"},
	} {
		if c.got != c.want || len(c.got) > 253 {
			t.Errorf("%s: got %q (%d characters), want %q", c.name, c.got, len(c.got), c.want)
		}
	}
}

func TestALongDigestHas64BitsHoweverLongTheNameIs(t *testing.T) {
	long := strings.Repeat("x", 120)
	for _, c := range []struct {
		epoch           int
		workspace, name string
		want            string
	}{
		{0, "clusters", "my-cluster", "cluster-clusters-my-cluster-bfd14deb5a00"},
		{1, "clusters", "my-cluster", "cluster-clusters-my-cluster-"},
		{1, "clusters", long, "cluster-clusters-" + long[:29] + "-"},
		{2, "clusters", "a-very-long-name-that-ends-in-", "cluster-clusters-a-very-long-name-that-ends-in-"},
		{1, "clusters", strings.Repeat("a", 28) + "-" + long, "cluster-clusters-" + strings.Repeat("a", 28) + "-"},
		{1, "clusters", strings.Repeat("a", 28) + "." + long, "cluster-clusters-" + strings.Repeat("a", 28) + "-"},
	} {
		got := LongMemberNamespaceAt(c.epoch, c.workspace, c.name)
		digest, found := strings.CutPrefix(got, c.want)
		if !found || len(got) > 63 || c.epoch > 0 && len(digest) != 16 {
			t.Errorf("epoch %d of %s/%s: %q", c.epoch, c.workspace, c.name, got)
		}
	}
	const golden = "cluster-clusters-my-cluster-c1582f3764404116"
	if got := LongMemberNamespaceAt(1, "clusters", "my-cluster"); got != golden {
		t.Errorf("got %q, want %q, as ever", got, golden)
	}
	if one, other := LongMemberNamespaceAt(1, "a", "b-c"), LongMemberNamespaceAt(1, "a-b", "c"); one == other {
		t.Errorf("two Clusters have the namespace %q", one)
	}
}

// TestDigestsNeverChange has golden vectors: names and stored values are such digests.
func TestDigestsNeverChange(t *testing.T) {
	for _, c := range [][3]string{
		{"the digest", Digest("abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		{"the digest of nothing", Digest[[]byte](nil), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		{"the short digest", ShortDigest([]byte("abc")), "ba7816bf8f01cfea"},
		{"the hash of a field", FieldHash("abc"), "80f0feebf0c2992eaeff10a0a5a2a607197992641193e0ea53e06224"},
		{"the hash of an empty field", FieldHash([]byte(nil)), "a7408a8b23aff882d8b95165eb24c3a6b519468539eb2b3072f529cb"},
		{"the hash of an object set", ObjectSetHash("abc"), "a9993e364706816aba3e25717850c26c9cd0d89d"},
	} {
		if c[1] != c[2] {
			t.Errorf("%s is %s, want %s", c[0], c[1], c[2])
		}
	}
}
