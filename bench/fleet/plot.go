package main

import (
	"fmt"
	"math"
	"strings"
)

// plotted are the figures with plots, by file name: costs per member, expected as level lines.
var plotted = map[string][]string{
	"join":    {"join: hub processor time per member", "restart: hub processor time per member"},
	"writes":  {"join: hub writes per member", "restart: hub writes per member", "bundle: hub writes per member"},
	"memory":  {"idle: hub memory per member (RSS)"},
	"restart": {"restart: leads", "restart: knows all members", "restart: settled"},
}

// plot returns an SVG of figures against the number of members.
func plot(figures []string, results []*result) string {
	const width, height, left, top, bottom = 720.0, 360.0, 60.0, 20.0, 60.0
	colors := []string{"#1f77b4", "#d62728", "#2ca02c"}
	largest, most, unit := 0.0, 1.0, ""
	for _, r := range results {
		most = max(most, float64(r.Members))
		for _, f := range r.Figures {
			for _, what := range figures {
				if f.What == what {
					largest, unit = max(largest, f.Value), f.Unit
				}
			}
		}
	}
	if largest == 0 {
		largest = 1
	}
	x := func(members int) float64 { return left + (width-left-20)*float64(members)/most }
	y := func(v float64) float64 { return height - bottom - (height-top-bottom)*v/largest }
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" font-family="sans-serif" font-size="12">`+"\n",
		width, height)
	fmt.Fprintf(&svg, `<rect width="100%%" height="100%%" fill="white"/><path d="M%.0f %.0fV%.0fH%.0f" stroke="black" fill="none"/>`+"\n",
		left, top, height-bottom, width-20)
	for i := range 5 {
		v := largest * float64(i) / 4
		fmt.Fprintf(&svg, `<text x="%.0f" y="%.0f" text-anchor="end">%s</text>`+"\n", left-6, y(v)+4, short(math.Round(v*100)/100))
	}
	for _, r := range results {
		fmt.Fprintf(&svg, `<text x="%.0f" y="%.0f" text-anchor="middle">%d</text>`+"\n", x(r.Members), height-bottom+16, r.Members)
	}
	for i, what := range figures {
		var points []string
		for _, r := range results {
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(r.Members), y(r.value(what))))
			fmt.Fprintf(&svg, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"/>`+"\n", x(r.Members), y(r.value(what)), colors[i])
		}
		fmt.Fprintf(&svg, `<polyline points="%s" stroke="%s" fill="none"/>`+"\n", strings.Join(points, " "), colors[i])
		fmt.Fprintf(&svg, `<text x="%.0f" y="%.0f" fill="%s">%s (%s)</text>`+"\n", left+10, height-bottom+32+float64(i)*12, colors[i], what, unit)
	}
	return svg.String() + "</svg>\n"
}
