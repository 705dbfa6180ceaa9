package deploy

import "time"

const (
	// firstCorrection and lastCorrection bound the time between two corrections of drift that somebody keeps causing.
	firstCorrection = 5 * time.Second
	lastCorrection  = 5 * time.Minute
	// calm is how long nothing has to be corrected until the next correction counts as the first again.
	calm = 10 * time.Minute
)

// corrected notes that drift was corrected. Each correction in a row doubles the time until the next, so that two who disagree do not keep
// the cluster busy.
func (of *delivery) corrected(now time.Time) {
	if now.Sub(of.correctAt) > calm {
		of.corrections = 0
	}
	wait := firstCorrection
	for range of.corrections {
		wait = min(2*wait, lastCorrection)
	}
	of.corrections++
	of.correctAt = now.Add(wait)
}

// contested says whether drift comes back each time it is corrected.
func (of *delivery) contested(now time.Time) bool {
	return of.corrections > 2 && now.Before(of.correctAt.Add(calm))
}
