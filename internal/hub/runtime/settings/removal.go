package settings

import (
	"fmt"

	"github.com/muster-fleet/muster/internal/hub/runtime/removal"
)

// wireRemovalBrake is the form of RemovalShare in the ConfigMap; missing fields mean the default.
type wireRemovalBrake struct {
	Share *int `json:"share"`
}

func (w wireRemovalBrake) parse(share int) (int, error) {
	if w.Share == nil {
		return share, nil
	}
	if !removal.IsShare(*w.Share) {
		return 0, fmt.Errorf("removalBrake.share %d: want a percentage from 0 to 100, which turns the brake off", *w.Share)
	}
	return *w.Share, nil
}
