package cli

import (
	"context"
	"errors"
	"strings"
	"time"

	"helm.sh/helm/v4/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/util/wait"
)

// pending is Helm's message for a release in use. Helm does not export the error.
const pending = "another operation (install/upgrade/rollback) is in progress"

// busyFor bounds the wait for another program's Helm operation. Most take seconds.
const busyFor = 20 * time.Second

// busyError reports a change by another program, for example by the agent's deployer.
type busyError struct{ error }

// whenFree runs a change of a release, with retries while another program is changing it. A
// completed change is a success even after a timeout or an interrupt; no other change begins then.
func whenFree(ctx context.Context, change func(context.Context) error) error {
	err := ctx.Err()
	if err != nil {
		return err
	}
	_ = wait.PollUntilContextTimeout(ctx, lookEvery, busyFor, true, func(ctx context.Context) (bool, error) {
		err = change(ctx)
		return !errors.As(err, &busyError{}), nil
	})
	return err
}

// busyOr returns the message, as a busyError if another program changed the release at the same
// time.
func busyOr(err, message error) error {
	if errors.Is(err, driver.ErrReleaseExists) || strings.Contains(err.Error(), pending) {
		return busyError{message}
	}
	return message
}
