package settings

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Audit says which AuditEntries are kept.
type Audit struct {
	// MaxAge is how long an entry is kept; zero is for ever.
	MaxAge time.Duration
	// MaxEntries is how many entries are kept in a namespace; with zero none are written.
	MaxEntries int
}

// minAuditAge keeps a mistake in the unit from deleting an entry before anybody has seen it.
const minAuditAge = time.Hour

// wireAudit is Audit as the ConfigMap has it; what is left out is the default.
type wireAudit struct {
	MaxAge     *metav1.Duration `json:"maxAge"`
	MaxEntries *int             `json:"maxEntries"`
}

func (w wireAudit) parse(a Audit) (Audit, error) {
	if age := w.MaxAge; age != nil {
		if a.MaxAge = age.Duration; a.MaxAge != 0 && a.MaxAge < minAuditAge {
			return Audit{}, fmt.Errorf("audit.maxAge %s: want 0, which is for ever, or at least %s", age.Duration, minAuditAge)
		}
	}
	if number := w.MaxEntries; number != nil {
		if a.MaxEntries = *number; a.MaxEntries < 0 {
			return Audit{}, fmt.Errorf("audit.maxEntries %d: want 0, which turns auditing off, or more", *number)
		}
	}
	return a, nil
}
