package testkube

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// UsageVariable names the file for the usage of a test run. Each process of the run appends a line
// when it ends: its name, and its processor time in seconds. hack/testrun sets the variable and
// sums up the lines. Without the variable nothing is measured.
const UsageVariable = "MUSTER_TEST_USAGE"

// recordUsage appends the processor time of a part of a test run.
func recordUsage(part string, used time.Duration) {
	path := os.Getenv(UsageVariable)
	if path == "" {
		return
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return // a failed measurement fails no test
	}
	_, _ = fmt.Fprintf(file, "%s %.2f\n", part, used.Seconds())
	_ = file.Close()
}

// recordOwnUsage appends the processor time of the test binary, after the tests of a package have
// ended.
func recordOwnUsage() {
	var own syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &own); err == nil {
		recordUsage("test:"+strings.TrimSuffix(filepath.Base(os.Args[0]), ".test"), time.Duration(own.Utime.Nano()+own.Stime.Nano()))
	}
}
