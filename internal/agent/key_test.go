package agent

import (
	"errors"
	"fmt"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/muster-fleet/muster/internal/agent/local"
)

func TestAnAgentGoesOnWithoutAKeyOnlyIfWaitingBringsNone(t *testing.T) {
	secrets, none := schema.GroupResource{Resource: "secrets"}, errors.New("any")
	for what, test := range map[string]struct {
		err  error
		want bool
	}{
		"no right to the Secret":       {apierrors.NewForbidden(secrets, "fleet-agent-key", none), true},
		"it may not be made like this": {apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "fleet-agent-key", nil), true},
		"a Secret without a key":       {local.ErrUnusableKey, true},
		"an API server that starts":    {apierrors.NewServiceUnavailable("starting"), false},
		"one that has much to do":      {apierrors.NewTooManyRequests("later", 1), false},
		"one that fails":               {apierrors.NewInternalError(none), false},
		"one that takes too long":      {apierrors.NewServerTimeout(secrets, "get", 1), false},
		"one that is not there":        {errors.New("connection refused"), false},
		"an account that is new":       {apierrors.NewUnauthorized("unknown"), false},
	} {
		if got := withoutKey(fmt.Errorf("reading secret: %w", test.err)); got != test.want {
			t.Errorf("%s: %t", what, got)
		}
	}
}
