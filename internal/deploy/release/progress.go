package release

import (
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// announcing tells when Helm writes down what it is about to do: then the templates are rendered.
type announcing struct {
	driver.Driver
	rendered func()
}

// Create implements driver.Driver.
func (a *announcing) Create(key string, made release.Releaser) error {
	if a.rendered != nil {
		a.rendered()
	}
	return a.Driver.Create(key, made)
}
