package layers

// Nobody looks at these numbers in review, so some of them doubled within days. A limit may be
// raised in the commit that says why.

const (
	// mostFolders is the number of folders at the root.
	mostFolders = 18
	// mostArrows is the number of pairs of root folders in which one imports the other.
	// Packages for tests and development do not count. One is that of docs: the sheet of costs has
	// its counts from the results in docs/measured/scale, where people read them too. Another one is that of
	// retention on reading: an export has what a read of the day shows.
	mostArrows = 57
	// mostCircled is the number of root folders that import each other in a circle.
	mostCircled = 0

	// mostColumns is the number of columns of a line. A tab has four.
	mostColumns = 140

	// mostDesign, mostPage and mostDocs are numbers of words, as wc counts them. mostDocs is of all
	// hand-written pages of docs together.
	mostDesign = 4_500
	mostPage   = 5_000
	mostDocs   = 85_000
)

// mostOf is how much anything may have of a kind. sizes.txt has the exceptions.
var mostOf = map[string]int{
	"columns":    0,   // long lines, of a folder
	"fields":     20,  // of a struct
	"file":       500, // lines
	"lines":      60,  // of a function that is no test
	"methods":    60,  // of a type
	"names":      60,  // exported by a package, without methods
	"parameters": 6,   // of a function
}

// unlimited are folders and files with code of others, and code that is data.
var unlimited = []string{"bin", "dist", "deploy/lint/testdata", "serve/page/files/preact.js", "serve/page/files/hooks.js"}

// longPages has the words of pages. A row is lowered when its page has lost a tenth.
var longPages = map[string]int{}
