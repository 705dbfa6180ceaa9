// Command docs makes a static site of the pages in docs, in the order of docs/README.md: with
// search, for a browser that opens the folder, and without a request to anybody.
//
// Its invariant: a link that leads nowhere, in a page or by its anchor, ends the build with the
// page's name, and the same source makes the same site.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "directory of the checkout")
	out := flag.String("out", "site", "directory to write to; what is there is removed")
	flag.Parse()
	pages, err := build(*root, *out)
	if err != nil {
		fmt.Fprintln(os.Stderr, "making the site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages; open %s/index.html\n", pages, *out)
}
