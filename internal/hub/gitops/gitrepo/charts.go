package gitrepo

import (
	"context"

	fleet "github.com/muster-fleet/muster/api/fleet/v1alpha1"
	"github.com/muster-fleet/muster/internal/chartfetch"
	"github.com/muster-fleet/muster/internal/repository/scan"
)

// maxEmbedded is the largest packed chart that becomes a part of its Bundle. The files of a Bundle
// may have 1.1 MiB, compressed.
const maxEmbedded = 900 << 10

// Charts fetches charts without credentials.
func Charts(fetcher *chartfetch.Fetcher) scan.Charts {
	return func(ctx context.Context, options *fleet.HelmOptions) (*scan.Chart, error) {
		fetched, err := fetcher.Fetch(ctx, *options, nil)
		if err != nil {
			return nil, err
		}
		files, version, err := fetched.Files()
		if err != nil {
			return nil, err
		}
		if len(fetched.Data) > maxEmbedded {
			files = nil
		}
		return &scan.Chart{Version: version, Files: files}, nil
	}
}
