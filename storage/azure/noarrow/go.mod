// In place of Apache Arrow, which azblob links for lists of blobs in its form. Nothing here asks
// for that form, and the real module adds 7 MB to each program and a sixth to the CPU of its start
// (azblob 1.8.1). It has the names that azblob needs to compile; its reader answers with an error.
module github.com/apache/arrow-go/v18

go 1.26.1
