package logging

import "slices"

// maxCauses bounds the logged causes of one outage. A cause may hold a number that always differs.
const maxCauses = 8

// Outage is a row of failures of one action. The log names each cause once. A hub that stops may
// first break connections, and then not answer.
type Outage struct{ causes []string }

// IsNews adds a failure, and reports whether the log does not name its cause yet.
func (o *Outage) IsNews(cause string) bool {
	if len(o.causes) == maxCauses || slices.Contains(o.causes, cause) {
		return false
	}
	o.causes = append(o.causes, cause)
	return true
}

// End handles a success, and reports whether there was a failure before.
func (o *Outage) End() bool {
	failed := len(o.causes) > 0
	o.causes = nil
	return failed
}
