package cli

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The exit codes of muster, as in docs/reference/commands.md.
const (
	exitFailed = 1
	// exitUsage reports a mistake in the command line, and a failed comparison.
	exitUsage = 2
	// exitNotWell reports problems of the fleet, or a failed check.
	exitNotWell = 3
	// exitTimedOut reports a goal that was not reached in time. The hub continues.
	exitTimedOut = 4
	// exitPartly reports an incomplete list, because the user may not list the rest.
	exitPartly = 5
)

// errPartly is the error of a list without the kinds the user may not list.
var errPartly = errors.New("the list is not complete, because you may not list the rest: name a kind, or use --namespace for one workspace")

// errNotWell is the error of a command with --exit-code for a fleet with problems.
var errNotWell = errors.New("there are problems")

// timedOut wraps the error of a goal that was not reached in time.
type timedOut struct{ error }

func (t timedOut) Unwrap() error { return t.error }

// ExitCode returns the exit code for the error of a command.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errPartly):
		return exitPartly
	case errors.As(err, &usageError{}), errors.As(err, &diffFailed{}):
		return exitUsage
	case errors.As(err, &timedOut{}):
		return exitTimedOut
	case errors.Is(err, errNotWell):
		return exitNotWell
	}
	return exitFailed
}

// partly returns errPartly if the user may not list a kind. A kind unknown to an older hub does
// not count.
func partly(refused []error) error {
	for _, err := range refused {
		if apierrors.IsForbidden(err) {
			return errPartly
		}
	}
	return nil
}
