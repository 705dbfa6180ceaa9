package cli

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// The exit codes of muster.
const (
	exitFailed = 1
	// exitPartly reports an incomplete list, because the user may not list the rest.
	exitPartly = 2
)

// errPartly is the error of a list without the kinds the user may not list.
var errPartly = errors.New("the list is not complete, because you may not list the rest: name a kind, or use --namespace for one workspace")

// ExitCode returns the exit code for the error of a command.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errPartly):
		return exitPartly
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
