package deploy

import (
	"bytes"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/muster-fleet/muster/internal/delivery/protocol"
	"github.com/muster-fleet/muster/internal/deploy/applied"
)

func TestTheDeliveriesUnknownToTheHubAreReportedTogether(t *testing.T) {
	replies, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	d := &controllers{
		replies: to, unknown: map[protocol.Kind]unknown{}, idle: map[protocol.Kind]bool{protocol.Bundles: false, protocol.Works: false},
	}
	blocked := protocol.Blocked{Reason: "RemovalBlocked", Message: "it is held"}
	release, work := applied.Kept{Name: "release shop/web"}, applied.Kept{Name: "Work crp-shop"}
	both := protocol.Blocked{Reason: "HubRestored", Message: applied.DescribeKept([]applied.Kept{release, work})}
	d.reportUnknown(protocol.Works, unknown{}) // the other one may have something to say
	d.reportUnknown(protocol.Bundles, unknown{kept: []applied.Kept{release}})
	d.reportUnknown(protocol.Works, unknown{kept: []applied.Kept{work}})
	d.reportUnknown(protocol.Bundles, unknown{blocked, []applied.Kept{release}})
	d.reportUnknown(protocol.Bundles, unknown{kept: []applied.Kept{release}})
	d.reportUnknown(protocol.Bundles, unknown{})
	d.reportUnknown(protocol.Works, unknown{})
	to.Close()
	var got []protocol.Blocked
	var text bytes.Buffer
	if _, err := text.ReadFrom(replies); err != nil {
		t.Fatal(err)
	}
	protocol.ReadReplies(&text, func(r protocol.Reply) { got = append(got, *r.Blocked) })
	want := []protocol.Blocked{
		{Reason: "HubRestored", Message: applied.DescribeKept([]applied.Kept{release})}, both, blocked, both,
		{Reason: "HubRestored", Message: applied.DescribeKept([]applied.Kept{work})}, {},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
