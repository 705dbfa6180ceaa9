package credential

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestAnswerIsReadableOnlyByTheAskerAndOnlyForItsRequest(t *testing.T) {
	key, err := NewAnswerKey()
	if err != nil {
		t.Fatal(err)
	}
	other, err := NewAnswerKey()
	if err != nil {
		t.Fatal(err)
	}
	want := Answer{
		Token: "t0ken", DeploymentNamespace: "ns", ClusterNamespace: "clusters", ClusterName: "c", Expires: time.Unix(1000, 0).UTC(),
	}
	sealed, err := Seal(key.Public(), "uid-1", want)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte(want.Token)) {
		t.Error("the sealed answer contains the token in clear")
	}
	got, err := key.Open("uid-1", sealed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answer changed in transit (-want +got):\n%s", diff)
	}
	if _, err := other.Open("uid-1", sealed); err == nil {
		t.Error("another key opened the answer")
	}
	if _, err := key.Open("uid-2", sealed); err == nil {
		t.Error("the answer to one request was accepted for another")
	}
}

func TestAnswerKeyOfWrongLengthIsRefused(t *testing.T) {
	if ValidAnswerKey([]byte("short")) {
		t.Error("a key of 5 bytes is called valid")
	}
	if _, err := Seal([]byte("short"), "uid", Answer{}); err == nil {
		t.Error("sealed to a key of 5 bytes")
	}
}
