package release

import (
	"helm.sh/helm/v4/pkg/release"
	"helm.sh/helm/v4/pkg/storage/driver"
)

// progressDriver calls stored just before Helm stores a revision: the templates are rendered by
// then.
type progressDriver struct {
	driver.Driver
	stored func(store func())
}

// Create implements driver.Driver.
func (a *progressDriver) Create(key string, made release.Releaser) error {
	a.stored(func() { _ = a.Update(key, made) }) // as Helm does: the next step reports an unreachable API server
	return a.Driver.Create(key, made)
}
