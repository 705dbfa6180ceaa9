//go:build !linux

package deploy

// confine leaves the program as it is.
func confine(string) error { return nil }
