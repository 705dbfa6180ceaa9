//go:build race

package render

// raceDetector is set if the program has the race detector; its own memory fits no bound.
const raceDetector = true
