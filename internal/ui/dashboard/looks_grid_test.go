package dashboard

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	paint "image/draw"
	"image/png"
	"os"
	"path/filepath"
)

// The comparison of pictures. A cell is a square of a page, as the mean of its colors. Between two
// versions of Chromium, the edges of letters differ by less than cellTolerance.
const (
	cellSize      = 10 // pixels
	cellTolerance = 10 // of 255, in red, green or blue
	cellsMayVary  = 3
)

// gridOf returns the cells of a picture.
func gridOf(shot []byte) (*image.NRGBA, error) {
	decoded, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	bounds := decoded.Bounds()
	full := image.NewNRGBA(bounds)
	paint.Draw(full, bounds, decoded, bounds.Min, paint.Src)
	grid := image.NewNRGBA(image.Rect(0, 0, bounds.Dx()/cellSize, bounds.Dy()/cellSize))
	for y := range grid.Rect.Dy() {
		for x := range grid.Rect.Dx() {
			grid.SetNRGBA(x, y, meanOf(full, x*cellSize, y*cellSize))
		}
	}
	return grid, nil
}

// meanOf returns the mean color of a cell.
func meanOf(full *image.NRGBA, left, top int) color.NRGBA {
	var sums [3]int
	for y := top; y < top+cellSize; y++ {
		pixels := full.Pix[full.PixOffset(left, y) : full.PixOffset(left+cellSize-1, y)+4]
		for i := range cellSize {
			for channel := range sums {
				sums[channel] += int(pixels[4*i+channel])
			}
		}
	}
	const pixels = cellSize * cellSize
	return color.NRGBA{uint8(sums[0] / pixels), uint8(sums[1] / pixels), uint8(sums[2] / pixels), 255}
}

// differing returns the cells that differ between two grids.
func differing(a, b *image.NRGBA) (cells []image.Point) {
	for y := range a.Rect.Dy() {
		for x := range a.Rect.Dx() {
			one, other := a.NRGBAAt(x, y), b.NRGBAAt(x, y)
			if max(apart(one.R, other.R), apart(one.G, other.G), apart(one.B, other.B)) > cellTolerance {
				cells = append(cells, image.Pt(x, y))
			}
		}
	}
	return cells
}

func apart(a, b uint8) int { return max(int(a)-int(b), int(b)-int(a)) }

// readGrid reads the reference of a picture.
func readGrid(file string) (*image.NRGBA, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	decoded, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", file, err)
	}
	grid := image.NewNRGBA(decoded.Bounds())
	paint.Draw(grid, grid.Rect, decoded, decoded.Bounds().Min, paint.Src)
	return grid, nil
}

// writeGrid writes the reference of a picture.
func writeGrid(file string, grid *image.NRGBA) error {
	var out bytes.Buffer
	encoder := png.Encoder{CompressionLevel: png.BestCompression}
	if err := encoder.Encode(&out, grid); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o644)
}

// compareLooks compares a picture with its reference. For a difference it keeps the picture, with
// red frames around the differing cells, and returns its path.
func compareLooks(shot []byte, reference, keep string) (difference string, err error) {
	grid, err := gridOf(shot)
	if err != nil {
		return "", err
	}
	want, err := readGrid(reference)
	if err != nil {
		return "", err
	}
	var cells []image.Point
	if grid.Rect != want.Rect {
		difference = fmt.Sprintf("is of another size: %v, not %v cells", grid.Rect.Size(), want.Rect.Size())
	} else if cells = differing(want, grid); len(cells) > cellsMayVary {
		difference = fmt.Sprintf("differs in %d squares, the first one at %v", len(cells), cells[0].Mul(cellSize))
	}
	if difference == "" || keep == "" {
		return difference, nil
	}
	marked, err := framed(shot, cells)
	if err != nil {
		return "", err
	}
	path := filepath.Join(keep, filepath.Base(reference))
	return difference + ": " + path, os.WriteFile(path, marked, 0o644)
}

// framed returns a picture with frames around cells.
func framed(shot []byte, cells []image.Point) ([]byte, error) {
	decoded, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		return nil, err
	}
	full := image.NewNRGBA(decoded.Bounds())
	paint.Draw(full, full.Rect, decoded, full.Rect.Min, paint.Src)
	for _, cell := range cells {
		at := cell.Mul(cellSize)
		for i := range cellSize {
			for _, edge := range []image.Point{{i, 0}, {i, cellSize - 1}, {0, i}, {cellSize - 1, i}} {
				full.SetNRGBA(at.X+edge.X, at.Y+edge.Y, color.NRGBA{255, 0, 0, 255})
			}
		}
	}
	var out bytes.Buffer
	err = png.Encode(&out, full)
	return out.Bytes(), err
}
