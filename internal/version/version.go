// Package version holds the version of the program, which the linker sets with -X.
package version

// Version of the program, such as v0.1.0.
var Version = "dev"
