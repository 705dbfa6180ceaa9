package hub_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/muster-fleet/muster/internal/naming"
)

func TestSettingsReachTheValuesOfTokensAndGarbageLeavesTheLastGoodOnesInForce(t *testing.T) {
	f := newAlone(t, "")
	f.token("new-token", "")
	settings := f.configure(`{"apiServerURL":"https://hub.example:6443"}`)
	url := func(want string) func() error {
		return func() error {
			if got := f.values("new-token")["apiServerURL"]; got != want {
				return fmt.Errorf("it is %q", got)
			}
			return nil
		}
	}
	f.eventually("the values have the URL", url("https://hub.example:6443"))
	settings.Data["config"] = "{{ garbage"
	f.check(f.Update(context.Background(), settings))
	f.eventually("an event says that the settings are invalid", func() error {
		var list eventsv1.EventList
		if err := f.List(context.Background(), &list, client.InNamespace(naming.SystemNamespace)); err != nil {
			return err
		}
		for _, e := range list.Items {
			if e.Reason == "ConfigInvalid" && strings.Contains(e.Note, "the previous settings stay in force") {
				return nil
			}
		}
		return fmt.Errorf("there are %d other events", len(list.Items))
	})
	_, values := f.token("later", "")
	if values["apiServerURL"] != "https://hub.example:6443" {
		t.Errorf("a token made meanwhile has the URL %q", values["apiServerURL"])
	}
	settings.Data["config"] = `{"apiServerURL":"https://other.example"}`
	f.check(f.Update(context.Background(), settings))
	f.eventually("the values have the new URL", url("https://other.example"))
}
