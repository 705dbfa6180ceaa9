package policy

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// The measure of prose: the documentation style guide of Kubernetes, with numbers.
const (
	maxSentenceWords = 25
	maxRelativeWords = 30 // per 100 sentences of a page
	maxProseColumns  = 120
)

// unwritten lists pages that do not pass yet, by the beginning of their path, with the reason.
// The list may only shrink: TestMarkdownIsPlainEnglish fails where all pages of an entry pass.
var unwritten = map[string]string{
	"CHANGELOG.md":                    "history",
	"docs/reference/api-fleet.md":     "has descriptions of Kubernetes' own types",
	"docs/reference/api-placement.md": "has descriptions of Kubernetes' own types",
}

// phrase is a word or phrase that is out, with a better one.
type phrase struct {
	out    *regexp.Regexp
	better string
}

func outWords(words, better string) phrase {
	return phrase{regexp.MustCompile(`(?i)\b(?:` + words + `)\b`), better}
}

var outPhrases = []phrase{
	outWords(`doors?`, "two ways to join: as a Cluster or as a MemberCluster"),
	outWords(`halls?`, "the fleet"),
	outWords(`the roll of|keeps the roll`, "the inventory of the fleet"),
	outWords(`records?`, "Cluster or MemberCluster; membership object where both are meant; as a verb: writes, keeps"),
	outWords(`beats?|beating`, "heartbeat; sends heartbeats"),
	outWords(`silent`, "has sent no heartbeat"),
	outWords(`told|asks|asked|hears|heard|judges?|judged`, "requests, queries, reports, receives, decides"),
	outWords(`claims?|abroad|cargo|strangers?|welcome|hindrances?|power`, "name the object or the action"),
	outWords(`whoever|whomever|somebody|someone|nobody|anybody|anyone who|no one`,
		"name the actor: the hub, the agent, a user, an administrator"),
	outWords(`his|him|he|she|hers?`, "they, their; or name the actor"),
	outWords(`(?:that|those) of`, "name the noun again: the name of X"),
	outWords(`(?:about|at|by|for|from|in|of|on|through|to|under|with) (?:which|whom)`, "two sentences, the noun first in each"),
	outWords(`says? whether`, "reports whether"),
	outWords(`has to be so`, "must"),
	outWords(`will`, "the present tense"),
	outWords(`please|simply|easily`, "leave it out"),
	{regexp.MustCompile(`\b(?:we|our|us)\b`), "Muster, the hub, the project"},
	{regexp.MustCompile(`\b(?:e\.g|i\.e|etc)\.`), "for example, that is, and so on"},
}

// sentence is a sentence of prose, and the line on which its paragraph has it.
type sentence struct {
	line int
	text string
}

// words counts the words of a sentence; a code span is one word.
func (s sentence) words() int {
	count := 0
	for _, word := range strings.Fields(s.text) {
		if strings.IndexFunc(word, func(r rune) bool { return r > 127 || r >= '0' && r <= '9' || r|0x20 >= 'a' && r|0x20 <= 'z' }) >= 0 {
			count++
		}
	}
	return count
}

// sentencesOf splits a paragraph into sentences. The paragraph's lines begin at the given line
// number.
func sentencesOf(paragraph string, line int) []sentence {
	var all []sentence
	start := 0
	add := func(end int) {
		if text := strings.TrimSpace(paragraph[start:end]); text != "" {
			first := start + strings.Index(paragraph[start:], text[:1])
			all = append(all, sentence{line + strings.Count(paragraph[:first], "\n"), strings.Join(strings.Fields(text), " ")})
		}
		start = end
	}
	for _, end := range sentenceEnd.FindAllStringIndex(paragraph, -1) {
		if !abbreviation.MatchString(paragraph[start:end[1]]) {
			add(end[1])
		}
	}
	add(len(paragraph))
	return all
}

var (
	sentenceEnd  = regexp.MustCompile(`[.!?][)"'”]*\s`)
	abbreviation = regexp.MustCompile(`\b(?:e\.g|i\.e|etc|vs|No)\.\s$`)
	relativeWord = regexp.MustCompile(`(?i)\b(?:which|that|what|who|whom|whose)\b`)
)

// proseFaults lists what is wrong with sentences: words that are out, and sentences that are too
// long.
func proseFaults(name string, sentences []sentence) (faults []string) {
	for _, s := range sentences {
		if count := s.words(); count > maxSentenceWords {
			faults = append(faults, fmt.Sprintf("%s:%d: %d words in a sentence, want at most %d: one idea per sentence: %.80s ...",
				name, s.line, count, maxSentenceWords, s.text))
		}
		for _, p := range outPhrases {
			if found := p.out.FindString(s.text); found != "" {
				faults = append(faults, fmt.Sprintf("%s:%d: %q is out; write: %s: %.80s ...", name, s.line, found, p.better, s.text))
			}
		}
	}
	return faults
}

// relativeWords counts them, and the sentences that have at least four words: a cell of a table
// that says "yes" is none.
func relativeWords(sentences []sentence) (relative, whole int) {
	for _, s := range sentences {
		relative += len(relativeWord.FindAllString(s.text, -1))
		if s.words() >= 4 {
			whole++
		}
	}
	return relative, whole
}

// relativeFaults reports a page or package with too many relative words.
func relativeFaults(name string, sentences []sentence) []string {
	relative, whole := relativeWords(sentences)
	if whole == 0 || relative*100 <= maxRelativeWords*whole {
		return nil
	}
	return []string{fmt.Sprintf("%s:1: %d relative words (which, that, what, who) in %d sentences, want at most %d per 100: noun first, then "+
		"the verb; two sentences instead of a clause",
		name, relative, whole, maxRelativeWords)}
}

var (
	codeSpan   = regexp.MustCompile("(?s)``.+?``|`[^`]+`")
	linkTarget = regexp.MustCompile(`\]\([^)]*\)`)
	htmlTag    = regexp.MustCompile(`</?[a-z][^>]*>`)
	listItem   = regexp.MustCompile(`^\s*(?:[-*+]|\d+\.)\s+`)
	comment    = regexp.MustCompile(`(?s)<!--.*?-->`)
)

// plainText takes the markup off a paragraph and keeps its line breaks.
func plainText(paragraph string) string {
	text := codeSpan.ReplaceAllStringFunc(paragraph, func(span string) string {
		return "`x`" + strings.Repeat("\n", strings.Count(span, "\n"))
	})
	text = linkTarget.ReplaceAllString(text, "]")
	return strings.NewReplacer("**", "", "*", "", "[", "", "]", "", "![", "").Replace(htmlTag.ReplaceAllString(text, ""))
}

// withoutComments takes HTML comments out of a page and keeps the numbers of its lines.
func withoutComments(page string) string {
	return comment.ReplaceAllStringFunc(page, func(c string) string { return strings.Repeat("\n", strings.Count(c, "\n")) })
}

// markdownSentences lists the sentences of a page: from paragraphs, headings, list items and cells
// of tables, but not from code.
func markdownSentences(page string) (all []sentence) {
	page = withoutComments(page)
	var paragraph []string
	begin, fenced := 0, false
	end := func() {
		all = append(all, sentencesOf(plainText(strings.Join(paragraph, "\n")), begin)...)
		paragraph = nil
	}
	for i, line := range strings.Split(page, "\n") {
		bare := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(bare, "```"):
			end()
			fenced = !fenced
		case fenced:
		case bare == "" || strings.HasPrefix(bare, "---"):
			end()
		case strings.HasPrefix(line, "    ") && len(paragraph) == 0 && !listItem.MatchString(line):
		case strings.HasPrefix(bare, "|"):
			end()
			for cell := range strings.SplitSeq(strings.Trim(plainText(bare), "| "), " | ") {
				if strings.Trim(cell, "-:| ") != "" {
					all = append(all, sentencesOf(cell, i+1)...)
				}
			}
		default:
			if listItem.MatchString(line) || strings.HasPrefix(bare, "#") {
				end()
			}
			if len(paragraph) == 0 {
				begin = i + 1
			}
			paragraph = append(paragraph, strings.TrimLeft(listItem.ReplaceAllString(line, ""), "#> "))
			if strings.HasPrefix(bare, "#") {
				end()
			}
		}
	}
	end()
	return all
}

// wideLines reports lines of prose that are too wide. Tables, code and the targets of
// links do not count.
func wideLines(name, page string) (faults []string) {
	fenced := false
	for i, line := range strings.Split(withoutComments(page), "\n") {
		bare := strings.TrimSpace(line)
		if strings.HasPrefix(bare, "```") {
			fenced = !fenced
		}
		if fenced || strings.HasPrefix(bare, "|") || strings.HasPrefix(line, "    ") {
			continue
		}
		if wide := len([]rune(linkTarget.ReplaceAllString(line, "]"))); wide > maxProseColumns {
			faults = append(faults, fmt.Sprintf("%s:%d: %d columns, want at most %d: break the line after a sentence",
				name, i+1, wide, maxProseColumns))
		}
	}
	return faults
}

func markdownFaults(name, page string) []string {
	sentences := markdownSentences(page)
	faults := append(proseFaults(name, sentences), relativeFaults(name, sentences)...)
	if strings.HasPrefix(name, "docs/reference/") || name == "docs/troubleshooting.md" {
		return faults // make generate writes each paragraph on one line
	}
	return append(faults, wideLines(name, page)...)
}

// exceptionFor returns the longest entry of unwritten at the beginning of a path;
// empty if there is none.
func exceptionFor(name string) (entry string) {
	for prefix := range unwritten {
		if strings.HasPrefix(name, prefix) && len(prefix) > len(entry) {
			entry = prefix
		}
	}
	return entry
}

func TestMarkdownIsPlainEnglish(t *testing.T) {
	failing := map[string]bool{}
	for _, name := range tracked(t) {
		if !strings.HasSuffix(name, ".md") || strings.Contains(name, "testdata/") {
			continue
		}
		faults := markdownFaults(name, string(read(t, name)))
		if entry := exceptionFor(name); entry != "" {
			failing[entry] = failing[entry] || len(faults) > 0
			continue
		}
		for _, fault := range faults {
			t.Error(fault)
		}
	}
	for entry := range unwritten {
		if !failing[entry] {
			t.Errorf("prose_test.go: %s passes now, or is gone: take it off the list unwritten", entry)
		}
	}
}

func TestProseFaultsAreFound(t *testing.T) {
	for page, want := range map[string]string{
		"Apply it.\n\nWhoever has a token registers.\n": `p.md:3: "Whoever" is out`,
		"The hub is lost. It is that of the agent.\n":   `p.md:1: "that of" is out`,
		"One\ntwo. " + strings.Repeat("word ", 26):      "p.md:2: 26 words in a sentence",
		"| a | b |\n| --- | --- |\n| x | He waits. |\n": `p.md:3: "He" is out`,
		strings.Repeat("wide ", 24) + "line.\n":         "p.md:1: 125 columns",
		"A hub that leads has what it needs to work.\n": "p.md:1: 2 relative words",
	} {
		if faults := strings.Join(markdownFaults("p.md", page), "\n"); !strings.Contains(faults, want) {
			t.Errorf("want %s, got %q for %q", want, faults, page)
		}
	}
	for _, page := range []string{
		"Run `whoever that of`.\n\n```sh\n# he waits\n```\n\n    somebody\n", "<!-- somebody -->\n",
		"See [the page](" + strings.Repeat("a", 200) + ").\n",
		"The hub rolls out. The agent rolls back.\n",
	} {
		if faults := markdownFaults("p.md", page); len(faults) > 0 {
			t.Errorf("%q: %v", page, faults)
		}
	}
}
