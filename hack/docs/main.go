// Command docs makes a static site of the pages in docs, in the order of docs/README.md. The site
// has a search and the newest releases, works from a folder in the browser, and sends no request to
// any server.
//
// Its invariant: a broken link or anchor in a page ends the build with the name of the page. The
// same source makes the same site.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "directory of the checkout")
	out := flag.String("out", "site", "directory to write to; its content is removed")
	flag.Parse()
	tags, err := releases(*root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "making the site of main only:", err)
	}
	pages, err := build(*root, *out, tags...)
	if err != nil {
		fmt.Fprintln(os.Stderr, "making the site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages; open %s/index.html\n", pages, *out)
}
