// Package clone reads branches, tags and commits of Git repositories.
//
// Its invariant: it runs no program and checks no files out. Protocols, addresses, bytes and time
// are limited, because the author of a GitRepo chooses the server. No error contains a credential.
package clone

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5"
	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/memory"

	"github.com/muster-fleet/muster/internal/repository/scan"
)

const (
	// maxPack bounds the bytes from a server for one commit.
	maxPack = 256 << 20
	// objectCache bounds the memory for unpacked objects of one repository.
	objectCache = 16 << 20
)

// isCommit matches the ID of a commit.
var isCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// Repository is a repository with the data to read from it.
type Repository struct {
	URL *url.URL
	// Branch is followed if Revision, a commit or a tag, is empty.
	Branch, Revision string
	// Credentials are nil for a public repository.
	Credentials *Credentials
	CABundle    []byte
	// Insecure accepts any certificate.
	Insecure bool
	Dialer   Dialer
	// Directory holds the objects while a commit is read.
	Directory string
	// Cache keeps the objects for an owner, the UID of a GitRepo. Without a cache, each commit is
	// fetched whole.
	Cache *Cache
	Owner string
}

// options are the library's inputs to reach a repository.
type options struct {
	url  string
	auth transport.AuthMethod
}

func (r *Repository) options(ctx context.Context) (options, error) {
	address := r.URL
	if address.Scheme == "ssh" {
		pinned, err := r.Dialer.pinned(ctx, address)
		if err != nil {
			return options{}, err
		}
		address = pinned
	}
	auth, err := r.Credentials.method(r.URL)
	return options{url: address.String(), auth: auth}, err
}

// Head returns the newest commit, by one request.
func (r *Repository) Head(ctx context.Context) (string, error) {
	if isCommit.MatchString(r.Revision) {
		return r.Revision, nil
	}
	o, err := r.options(ctx)
	if err != nil {
		return "", r.explain(err)
	}
	remote := git.NewRemote(memory.NewStorage(), &config.RemoteConfig{Name: "origin", URLs: []string{o.url}})
	refs, err := remote.ListContext(ctx, &git.ListOptions{
		Auth: o.auth, CABundle: r.CABundle, InsecureSkipTLS: r.Insecure, PeelingOption: git.AppendPeeled,
	})
	if err != nil {
		return "", r.explain(err)
	}
	found := map[plumbing.ReferenceName]*plumbing.Reference{}
	for _, ref := range refs {
		found[ref.Name()] = ref
	}
	for _, name := range r.names() {
		if ref := found[name]; ref != nil {
			return ref.Hash().String(), nil
		}
	}
	return "", r.missing(found)
}

// names returns the references of the branch or tag. For an annotated tag, the reference with the
// suffix names the commit.
func (r *Repository) names() []plumbing.ReferenceName {
	if r.Revision != "" {
		tag := plumbing.NewTagReferenceName(r.Revision)
		return []plumbing.ReferenceName{tag + "^{}", tag}
	}
	return []plumbing.ReferenceName{plumbing.NewBranchReferenceName(r.Branch)}
}

// missing returns the error for a branch or tag missing in the references of the repository.
func (r *Repository) missing(found map[plumbing.ReferenceName]*plumbing.Reference) error {
	remedy := "set spec.branch"
	if head := found[plumbing.HEAD]; head != nil && head.Type() == plumbing.SymbolicReference && head.Target().IsBranch() {
		remedy += ", for example to " + head.Target().Short()
	}
	switch {
	case r.Revision == "":
		return fmt.Errorf("the repository has no branch %s: %s", r.Branch, remedy)
	case found[plumbing.NewBranchReferenceName(r.Revision)] != nil:
		return fmt.Errorf("the repository has no tag %[1]s; %[1]s is a branch: set spec.branch, and remove spec.revision", r.Revision)
	}
	return fmt.Errorf("the repository has no tag %s, and spec.revision is no commit of 40 digits", r.Revision)
}

// clone fetches a number of commits into a directory, without a checkout; 0 fetches all.
func (r *Repository) clone(ctx context.Context, o options, directory string, depth int) (*git.Repository, error) {
	storage := storageIn(ctx, directory)
	repository, err := git.Init(storage, nil)
	if errors.Is(err, git.ErrRepositoryAlreadyExists) {
		repository, err = git.Open(storage, nil)
	}
	if err != nil {
		return nil, fmt.Errorf("preparing a clone: %w", err)
	}
	remote := git.NewRemote(storage, &config.RemoteConfig{Name: "origin", URLs: []string{o.url}})
	fetch := &git.FetchOptions{
		Auth: o.auth, CABundle: r.CABundle, InsecureSkipTLS: r.Insecure, Depth: depth, Tags: git.NoTags,
		RefSpecs: []config.RefSpec{config.RefSpec("+" + r.source() + ":refs/heads/read")},
	}
	err = remote.FetchContext(ctx, fetch)
	if isCommit.MatchString(r.Revision) && err != nil && ctx.Err() == nil && !errors.Is(err, errPack) && !errors.Is(err, errObject) {
		// The server gives only branches and tags.
		fetch.Depth, fetch.RefSpecs = 0, []config.RefSpec{"+refs/heads/*:refs/remotes/origin/*"}
		err = remote.FetchContext(ctx, fetch)
	}
	if err != nil && !errors.Is(err, git.NoErrAlreadyUpToDate) {
		return nil, r.explain(err)
	}
	return repository, nil
}

// source is the reference or commit to fetch.
func (r *Repository) source() string {
	switch {
	case isCommit.MatchString(r.Revision):
		return r.Revision
	case r.Revision != "":
		return plumbing.NewTagReferenceName(r.Revision).String()
	}
	return plumbing.NewBranchReferenceName(r.Branch).String()
}

// files returns the files of a commit, and its submodules without their files. Links are followed
// within the commit.
func files(ctx context.Context, commit *object.Commit) (scan.Tree, error) {
	root, err := commit.Tree()
	if err != nil {
		return scan.Tree{}, err
	}
	blobs, links, submodules := map[string]plumbing.Hash{}, map[string]plumbing.Hash{}, map[string]bool{}
	walker := object.NewTreeWalker(root, true, nil)
	defer walker.Close()
	for {
		name, entry, err := walker.Next()
		switch {
		case errors.Is(err, io.EOF):
			return follow(ctx, repositoryOf{root, blobs}, links, submodules)
		case err != nil:
			return scan.Tree{}, err
		case ctx.Err() != nil:
			return scan.Tree{}, ctx.Err()
		}
		switch entry.Mode {
		case filemode.Regular, filemode.Executable, filemode.Deprecated:
			blobs[name] = entry.Hash
		case filemode.Symlink:
			links[name] = entry.Hash
		case filemode.Submodule:
			submodules[name] = true
		case filemode.Empty, filemode.Dir: // no files
		}
		if len(blobs)+len(links)+len(submodules) > scan.MaxPaths {
			return scan.Tree{}, scan.TooMany()
		}
	}
}

// repositoryOf reads the blobs of a tree.
type repositoryOf struct {
	tree  *object.Tree
	blobs map[string]plumbing.Hash
}

func (r repositoryOf) read(name string, hash plumbing.Hash) ([]byte, error) {
	file, err := r.tree.TreeEntryFile(&object.TreeEntry{Name: name, Mode: filemode.Regular, Hash: hash})
	var large tooLarge
	if errors.As(err, &large) {
		return nil, scan.TooLarge(name, int64(large))
	} else if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	reader, err := file.Reader()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	defer func() { _ = reader.Close() }()
	data, err := io.ReadAll(io.LimitReader(reader, scan.MaxFile))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	return data, nil
}

// follow adds links to files of the commit, and the submodules.
func follow(ctx context.Context, r repositoryOf, hashes map[string]plumbing.Hash, submodules map[string]bool) (scan.Tree, error) {
	tree := scan.Tree{Submodules: submodules, Broken: map[string]error{}, Paths: slices.Collect(maps.Keys(submodules))}
	texts := links{}
	for name, hash := range hashes {
		if ctx.Err() != nil {
			return scan.Tree{}, ctx.Err()
		}
		text, err := r.read(name, hash)
		if err != nil {
			return scan.Tree{}, err
		}
		texts[name] = string(text[:min(len(text), maxLink+1)])
	}
	directories := map[string]bool{".": true}
	for name := range r.blobs {
		tree.Paths = append(tree.Paths, name)
		for dir := path.Dir(name); !directories[dir]; dir = path.Dir(dir) {
			directories[dir] = true
		}
	}
	targets := map[string]plumbing.Hash{}
	for name, text := range texts {
		if ctx.Err() != nil {
			return scan.Tree{}, ctx.Err()
		}
		target, err := texts.resolve(name)
		hash, found := r.blobs[target]
		switch {
		case err != nil:
			tree.Broken[name] = err
		case found:
			targets[name] = hash
		case directories[target]:
			continue
		default:
			tree.Broken[name] = scan.NoTarget(name, text)
		}
		tree.Paths = append(tree.Paths, name)
	}
	maps.Copy(r.blobs, targets)
	slices.Sort(tree.Paths)
	tree.Read = func(name string) ([]byte, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		return r.read(name, r.blobs[name])
	}
	return tree, nil
}

const (
	// mostLinks limits the links on the way to a file, as Linux does.
	mostLinks = 40
	// maxLink bounds the bytes of a link's target. A commit may have many links, all in memory.
	maxLink = 1024
)

// links are the targets of the links of a commit, by path.
type links map[string]string

// resolve returns the path behind all links in a path.
func (l links) resolve(name string) (string, error) {
	resolved := name
	for range mostLinks {
		link := l.first(resolved)
		if link == "" {
			return resolved, nil
		}
		if len(l[link]) > maxLink {
			return "", fmt.Errorf("the link %s has a target of more than %d bytes: correct the link", link, maxLink)
		}
		target, err := scan.LinkTarget(link, l[link])
		if err != nil {
			return "", err
		}
		resolved = path.Join(target, strings.TrimPrefix(resolved, link))
	}
	return "", fmt.Errorf("the link %s leads through more than %d links", name, mostLinks)
}

// first returns the shortest beginning of a path that is a link; "" if there is none.
func (l links) first(name string) string {
	for i := range len(name) + 1 {
		if i < len(name) && name[i] != '/' {
			continue
		}
		if _, isLink := l[name[:i]]; isLink {
			return name[:i]
		}
	}
	return ""
}

// explain names the remedy of an error, without the address: the library adds it to some errors.
func (r *Repository) explain(err error) error {
	host := r.URL.Hostname()
	switch {
	case errors.Is(err, transport.ErrAuthenticationRequired):
		return fmt.Errorf("%s has no such repository, or it is private: name a Secret with credentials in spec.clientSecretName", host)
	case errors.Is(err, transport.ErrAuthorizationFailed):
		return fmt.Errorf("%s refuses the credentials of the Secret, or they have no access to the repository", host)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		return fmt.Errorf("%s has no repository %s, or the credentials have no access to it", host, strings.TrimPrefix(r.URL.Path, "/"))
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		return errors.New("the repository is empty")
	case errors.As(err, new(git.NoMatchingRefSpecError)):
		return r.missing(nil)
	}
	return fmt.Errorf("%s: %w", host, withoutURL(err))
}

// withoutURL removes the address from errors of net/http.
func withoutURL(err error) error {
	var failed *url.Error
	if errors.As(err, &failed) {
		return failed.Err
	}
	return err
}
