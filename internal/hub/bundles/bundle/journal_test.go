package bundle

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
)

func TestABundleThatKillsHubsIsSetAside(t *testing.T) {
	dir := t.TempDir()
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "clusters", Name: "large", UID: "u", Generation: 1}}
	open := func() *journal {
		t.Helper()
		j, err := openJournal(dir)
		if err != nil {
			t.Fatal(err)
		}
		return j
	}
	begin := func(j *journal) func() error {
		t.Helper()
		end, err := j.begin(bundle)
		if err != nil {
			t.Fatal(err)
		}
		return end
	}
	begin(open())
	if err := begin(open())(); err != nil {
		t.Fatal(err)
	}
	if why := open().setAside(bundle); why != "" {
		t.Errorf("one that was checked in the end is set aside: %s", why)
	}
	begin(open())
	if why := open().setAside(bundle); why != "" {
		t.Errorf("after one death, which may be by chance, it is set aside: %s", why)
	}
	begin(open())
	j := open()
	if why := j.setAside(bundle); !strings.Contains(why, "a hub ended 2 times during the check") {
		t.Errorf("after two deaths it says %q", why)
	}
	if why := open().setAside(bundle); why == "" {
		t.Error("a hub that is started once more forgets it")
	}
	bundle.Generation++
	if why := j.setAside(bundle); why != "" {
		t.Errorf("after a change it is set aside: %s", why)
	}
	if j, err := openJournal(""); err != nil || begin(j)() != nil {
		t.Error("without a directory it fails")
	}
}
