package hostnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// unknownImageError is the error for an image without an --image.
type unknownImageError struct{ image string }

func (e unknownImageError) Error() string {
	names := imageNames(e.image)
	return fmt.Sprintf("image %s is not known to localkube; start it with --image %s=BINARY", e.image, names[len(names)-1])
}

// program returns the program of an image. It finds it by the full name, without tag and digest,
// without the registry, or by the last part of its path.
func program(images map[string]string, image string) (name, path string, err error) {
	for _, candidate := range imageNames(image) {
		if path, known := images[candidate]; known {
			return candidate, path, nil
		}
	}
	return "", "", unknownImageError{image: image}
}

func imageNames(image string) []string {
	names := []string{image}
	repository, _, _ := strings.Cut(image, "@")
	// A colon after the last slash starts a tag, one before it a port.
	if colon := strings.LastIndexByte(repository, ':'); colon > strings.LastIndexByte(repository, '/') {
		repository = repository[:colon]
	}
	names = append(names, repository)
	if first, rest, found := strings.Cut(repository, "/"); found && (strings.ContainsAny(first, ".:") || first == "localhost") {
		names = append(names, rest)
	}
	return append(names, repository[strings.LastIndexByte(repository, '/')+1:])
}

// commandLine turns a container's command and args into a process's. An image of one program has
// that program as its entrypoint; a command may name it again, by any path.
func commandLine(name, path string, command, args []string) (string, []string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", nil, fmt.Errorf("looking at the program of image %s: %w", name, err)
	}
	if info.IsDir() {
		return fromDirectory(name, path, command, args)
	}
	if len(command) == 0 {
		return path, args, nil
	}
	if base := filepath.Base(command[0]); base != filepath.Base(path) && base != name {
		return "", nil, fmt.Errorf("image %s has one program, %s, but the command is %s; name that program, or give localkube a directory: "+
			"--image %s=DIRECTORY",
			name, filepath.Base(path), command[0], name)
	}
	return path, append(append([]string{}, command[1:]...), args...), nil
}

func fromDirectory(name, path string, command, args []string) (string, []string, error) {
	if len(command) == 0 {
		return "", nil, fmt.Errorf("image %s is a directory of programs; set the container's command to one of them", name)
	}
	found := filepath.Join(path, filepath.Base(command[0]))
	if info, err := os.Stat(found); err != nil || info.IsDir() {
		return "", nil, fmt.Errorf("image %s has no program %s", name, filepath.Base(command[0]))
	}
	return found, append(append([]string{}, command[1:]...), args...), nil
}
