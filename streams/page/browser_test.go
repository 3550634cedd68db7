package page_test

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser finds a headless one; without any, there is nothing to test with.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium on this machine")
	return ""
}

// open lets a browser load the page and work on it for some seconds of its time.
func open(t *testing.T, chromium, url string, args ...string) []byte {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second)
	defer cancel()
	args = append([]string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars", "--no-first-run",
		"--user-data-dir=" + t.TempDir(), "--window-size=1400,1500", "--virtual-time-budget=4000"}, append(args, url)...)
	cmd := exec.CommandContext(ctx, chromium, args...)
	cmd.WaitDelay = time.Second
	var out, errout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errout
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			t.Skip("the browser does not get through on this machine: ", ctx.Err())
		}
		t.Fatalf("%v: %s", err, errout.String())
	}
	return out.Bytes()
}

// TestPageInABrowser: a browser runs the page's script, and what it shows then is
// what the job has done; and the picture has colours of both themes.
func TestPageInABrowser(t *testing.T) {
	chromium := browser(t)
	const orders = 200
	url, _ := serve(t, orders)
	settled(t, url, 1+2*orders)
	dom := string(open(t, chromium, url, "--dump-dom"))
	text := func(pattern string) string {
		m := regexp.MustCompile(pattern).FindStringSubmatch(dom)
		if m == nil {
			t.Errorf("the page has nothing like %s", pattern)
			return ""
		}
		return m[1]
	}
	if got := text(`id="state" class="pill running">([^<]*)<`); got != "running" {
		t.Errorf("state is %q", got)
	}
	if got := text(`data-rate="orders">([^<]*)<`); got != "200" {
		t.Errorf("orders that came in: %q", got)
	}
	if got := text(`data-lag="orders">([^<]*)<`); got != "up to date" {
		t.Errorf("behind: %q", got)
	}
	if got := text(`<b>([^<]*)</b><span>workers / tasks<`); got != "2 / 4" {
		t.Errorf("workers and tasks: %q", got)
	}
	if n := strings.Count(text(`(?s)id="tasks">(.*?)</table>`), "<tr>"); n != 1+4 {
		t.Errorf("the table of tasks has %d rows", n)
	}
	if !regexp.MustCompile(`id="trouble"[^>]*hidden`).MatchString(dom) {
		t.Error("the page says that nobody answers")
	}
	for theme, bright := range map[string]bool{"light": true, "dark": false} {
		file := filepath.Join(t.TempDir(), theme+".png")
		args := []string{"--screenshot=" + file}
		if !bright {
			args = append(args, "--force-dark-mode", "--blink-settings=preferredColorScheme=0")
		}
		open(t, chromium, url, args...)
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if keep := os.Getenv("MILLRACE_PICTURES"); keep != "" {
			if err := os.WriteFile(filepath.Join(keep, "page-"+theme+".png"), raw, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		img, err := png.Decode(bytes.NewReader(raw))
		if err != nil {
			t.Fatal(err)
		}
		if got := brightness(img) > 0.5; got != bright {
			t.Errorf("the %s picture has brightness %.2f", theme, brightness(img))
		}
		if n := colours(img); n < 50 {
			t.Errorf("the %s picture has %d colours: it is empty", theme, n)
		}
	}
}

func brightness(img image.Image) float64 {
	var sum, n float64
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y += 7 {
		for x := b.Min.X; x < b.Max.X; x += 7 {
			r, g, bl, _ := img.At(x, y).RGBA()
			sum += float64(r+g+bl) / (3 * 0xffff)
			n++
		}
	}
	return sum / n
}

func colours(img image.Image) int {
	seen := map[[3]uint32]bool{}
	b := img.Bounds()
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := img.At(x, y).RGBA()
			seen[[3]uint32{r, g, bl}] = true
		}
	}
	return len(seen)
}
