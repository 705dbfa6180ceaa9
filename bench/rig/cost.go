package rig

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Ceiling returns the raw-write ceiling: the number of small objects that the API server creates in
// a second with 32 writers.
func Ceiling(ctx context.Context, c client.Client, namespace string) (float64, error) {
	const writers, each = 32, 100
	begun, failed := time.Now(), make([]error, writers)
	var group sync.WaitGroup
	for w := range writers {
		group.Go(func() {
			for i := range each {
				o := &corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: fmt.Sprintf("ceiling-%d-%d", w, i)}, Data: map[string]string{"a": "b"},
				}
				failed[w] = errors.Join(failed[w], c.Create(ctx, o))
			}
		})
	}
	group.Wait()
	rate := writers * each / time.Since(begun).Seconds()
	deleted := Retry(ctx, func() error { return c.DeleteAllOf(ctx, &corev1.ConfigMap{}, client.InNamespace(namespace)) })
	return rate, errors.Join(errors.Join(failed...), deleted)
}

// Usage is the usage of a program: processor time in seconds since its start, resident memory in
// MiB.
type Usage struct{ CPU, RSS float64 }

// Usages returns the usage of each program by name: the components of the control plane in a
// directory, and further processes.
func Usages(dir string, processes ...int) (map[string]Usage, error) {
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return nil, err
	}
	usages := map[string]Usage{}
	for _, path := range lines {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, fmt.Errorf("reading %s: %w", path, err)
		}
		words := strings.Split(string(text), "\x00")
		name := filepath.Base(words[0])
		switch {
		case strings.Contains(string(text), dir) && len(words) > 2 && words[1] == "component":
			name = words[2]
		case !slices.Contains(processes, pid):
			continue
		}
		cpu, err := processorTime(pid)
		if err != nil {
			continue // it has ended
		}
		rss, err := Memory(pid, "VmRSS:")
		if err != nil {
			continue
		}
		usages[name] = Usage{usages[name].CPU + cpu, usages[name].RSS + rss}
	}
	return usages, nil
}

func processorTime(pid int) (seconds float64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, ticks := range fields[11:13] { // utime and stime, in hundredths
		n, err := strconv.ParseFloat(ticks, 64)
		if err != nil {
			return 0, fmt.Errorf("reading the processor time of process %d: %w", pid, err)
		}
		seconds += n / 100
	}
	return seconds, nil
}

// Memory returns a line of the status of a process, such as VmRSS:, in MiB.
func Memory(pid int, field string) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if value, ok := strings.CutPrefix(line, field); ok {
			kib, err := strconv.ParseFloat(strings.Fields(value)[0], 64)
			return kib / 1024, err
		}
	}
	return 0, fmt.Errorf("the status of process %d has no %s", pid, field)
}

// Percentile returns a percentile of sorted durations.
func Percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(float64(len(sorted))*p), len(sorted)-1)]
}
