package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// document is the part of SPDX 2.3 for the modules in a set of programs.
type document struct {
	Version       string         `json:"spdxVersion"`
	License       string         `json:"dataLicense"`
	ID            string         `json:"SPDXID"`
	Name          string         `json:"name"`
	Namespace     string         `json:"documentNamespace"`
	Creation      creation       `json:"creationInfo"`
	Packages      []module       `json:"packages"`
	Relationships []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type module struct {
	ID       string      `json:"SPDXID"`
	Name     string      `json:"name"`
	Version  string      `json:"versionInfo"`
	Download string      `json:"downloadLocation"`
	Refs     []reference `json:"externalRefs,omitempty"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	From string `json:"spdxElementId"`
	Type string `json:"relationshipType"`
	To   string `json:"relatedSpdxElement"`
}

// billOfMaterials lists the modules that the Go linker wrote into the programs.
func billOfMaterials(name, version, dir string, programs []string, created time.Time) ([]byte, error) {
	versions := map[string]string{}
	for _, program := range programs {
		info, err := buildinfo.ReadFile(filepath.Join(dir, program))
		if err != nil {
			return nil, fmt.Errorf("reading what %s was built of: %w", program, err)
		}
		versions["stdlib"] = strings.TrimPrefix(info.GoVersion, "go")
		for _, dependency := range info.Deps {
			if dependency.Replace != nil {
				dependency = dependency.Replace
			}
			versions[dependency.Path] = dependency.Version
		}
	}
	const rootID = "SPDXRef-image"
	doc := document{
		Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name,
		Namespace: "https://github.com/muster-fleet/muster/sbom/" + name + "/" + version,
		Creation:  creation{Created: created.UTC().Format(time.RFC3339), Creators: []string{"Tool: hack/images"}},
		Packages:  []module{{ID: rootID, Name: name, Version: version, Download: "NOASSERTION"}},
		Relationships: []relationship{
			{From: "SPDXRef-DOCUMENT", Type: "DESCRIBES", To: rootID},
		},
	}
	for path, moduleVersion := range versions {
		digest := sha256.Sum256([]byte(path + "@" + moduleVersion))
		id := "SPDXRef-" + hex.EncodeToString(digest[:8])
		doc.Packages = append(doc.Packages, module{
			ID: id, Name: path, Version: moduleVersion, Download: "NOASSERTION",
			Refs: []reference{{Category: "PACKAGE-MANAGER", Type: "purl", Locator: "pkg:golang/" + path + "@" + moduleVersion}},
		})
		doc.Relationships = append(doc.Relationships, relationship{From: rootID, Type: "DEPENDS_ON", To: id})
	}
	slices.SortFunc(doc.Packages[1:], func(a, b module) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(doc.Relationships[1:], func(a, b relationship) int { return strings.Compare(a.To, b.To) })
	return json.MarshalIndent(doc, "", " ")
}
