package settings

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Audit limits the number and age of AuditEntries.
type Audit struct {
	// MaxAge is the maximum age of an entry; zero for no limit.
	MaxAge time.Duration
	// MaxEntries is the maximum number of entries in a namespace; with zero the hub writes none.
	MaxEntries int
}

// minAuditAge limits mistakes in the unit: no entry is deleted before users have seen it.
const minAuditAge = time.Hour

// wireAudit is the form of Audit in the ConfigMap; missing fields mean the default.
type wireAudit struct {
	MaxAge     *metav1.Duration `json:"maxAge"`
	MaxEntries *int             `json:"maxEntries"`
}

func (w wireAudit) parse(a Audit) (Audit, error) {
	if age := w.MaxAge; age != nil {
		if a.MaxAge = age.Duration; a.MaxAge != 0 && a.MaxAge < minAuditAge {
			return Audit{}, fmt.Errorf("audit.maxAge %s: want 0, which means forever, or at least %s", age.Duration, minAuditAge)
		}
	}
	if number := w.MaxEntries; number != nil {
		if a.MaxEntries = *number; a.MaxEntries < 0 {
			return Audit{}, fmt.Errorf("audit.maxEntries %d: want 0, which turns auditing off, or more", *number)
		}
	}
	return a, nil
}
