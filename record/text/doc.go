// Package text reads what a line of text shows: its time and its level, in the forms of loggers,
// behind the prefixes that runtimes write in front of a line. It knows no body and no record of
// several lines.
package text
