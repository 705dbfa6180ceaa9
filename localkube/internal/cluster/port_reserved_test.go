package cluster

import (
	"os"
	"testing"
)

func TestThePortOfAClusterThatIsDownIsItsOwn(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := Dir{Name: "down", Path: t.TempDir()}
	s, err := d.create(0, HostNode)
	if err != nil {
		t.Fatal(err)
	}
	if !reserved(s.Port) || reserved(s.Port+1) {
		t.Errorf("port %d is reserved: %t, the next one: %t", s.Port, reserved(s.Port), reserved(s.Port+1))
	}
	if err := os.Rename(d.file("state.json"), d.file("lost")); err != nil {
		t.Fatal(err)
	}
	if reserved(s.Port) {
		t.Error("the port of a cluster that is gone is reserved")
	}
	if err := os.Rename(d.file("lost"), d.file("state.json")); err != nil {
		t.Fatal(err)
	}
	if err := d.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(reservation(s.Port)); !os.IsNotExist(err) {
		t.Errorf("a deleted cluster leaves its note: %v", err)
	}
}
