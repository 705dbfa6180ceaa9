//go:build race

package render

// raceDetector says that the program is built with the race detector, whose own memory fits no bound.
const raceDetector = true
