package cli

import (
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// What the program muster ends with.
const (
	exitFailed = 1
	// exitPartly says that a part was left out of what was shown, because the user may not list it.
	exitPartly = 2
)

// errPartly is the error of a command that has shown all that the user may list, which is not all that was asked for.
var errPartly = errors.New("you may not list all that you asked for, so a part is not shown; name the kind, or a workspace with --namespace, to ask for the rest only")

// ExitCode is what a program ends with whose command has returned an error.
func ExitCode(err error) int {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errPartly):
		return exitPartly
	}
	return exitFailed
}

// partly is errPartly if something may not be listed. A kind that an older hub does not serve leaves nothing out.
func partly(refused []error) error {
	for _, err := range refused {
		if apierrors.IsForbidden(err) {
			return errPartly
		}
	}
	return nil
}
