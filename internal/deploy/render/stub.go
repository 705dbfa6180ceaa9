package render

import "text/template"

// Stubs returns the functions of the templates of a loaded chart. The first call renders them all.
func Stubs(rendered func() (map[string]string, error)) template.FuncMap {
	return template.FuncMap{stub: func(name string) (string, error) {
		files, err := rendered()
		return files[name], err
	}}
}
