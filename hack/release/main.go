// Command release writes the files of a release of Muster: the command line for each platform, the
// images, and the charts as a repository. It adds the checksums of all files and their provenance.
// With a key, it signs the checksums and the images.
//
// With -images it makes the images alone.
//
// The same commit gives the same files: they depend on neither the machine nor the day.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	r := release{}
	flag.StringVar(&r.source, "source", ".", "directory of the module")
	flag.StringVar(&r.out, "out", "dist", "directory that everything goes to")
	flag.StringVar(&r.described, "version", "", "version of all that is made, as git describes it")
	flag.StringVar(&r.url, "url", "", "where the charts are served, if not beside the index")
	flag.StringVar(&r.key, "key", "", "file of a private key (PEM, PKCS #8, ECDSA) that signs the images and the checksums")
	onlyImages := flag.Bool("images", false, "only build the images, in the directory images of -out")
	flag.Parse()
	run := r.make
	if *onlyImages {
		run = r.makeImages
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}
