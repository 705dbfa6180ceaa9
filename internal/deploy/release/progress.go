package release

import (
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// progressDriver calls rendered when Helm stores a revision: the templates are rendered then.
type progressDriver struct {
	driver.Driver
	rendered func()
}

// Create implements driver.Driver.
func (a *progressDriver) Create(key string, made release.Releaser) error {
	if a.rendered != nil {
		a.rendered()
	}
	return a.Driver.Create(key, made)
}
