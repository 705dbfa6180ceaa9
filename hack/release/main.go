// Command release writes what a version of Muster is delivered as: the command line for each
// platform, the charts as a repository, and the checksums of all that is in the directory,
// the images among it, with where they come from and, with a key, signatures of the
// checksums and of the images.
//
// With -images it makes the images alone.
//
// The same commit gives the same files: nothing of the machine or the day is in them.
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
	flag.StringVar(&r.url, "url", "", "where the charts will be served, if not beside the index")
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
