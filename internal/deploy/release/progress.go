package release

import (
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// progressDriver calls stored just before Helm stores a revision: the templates are rendered by
// then. Helm stores nothing after an error.
type progressDriver struct {
	driver.Driver
	stored func(store func()) error
}

// Create implements driver.Driver.
func (a *progressDriver) Create(key string, made release.Releaser) error {
	// As Helm does: the next step reports an unreachable API server.
	if err := a.stored(func() { _ = a.Update(key, made) }); err != nil {
		return err
	}
	return a.Driver.Create(key, made)
}
