package azure_test

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"blobtail/storage"
	"blobtail/storage/azure"
)

// The answer of the service for two blobs, and that of Azurite.
const (
	servicePage = "\xef\xbb\xbf" + `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="https://acct.blob.core.windows.net/" ContainerName="logs"><Prefix>web/</Prefix><Blobs>` +
		serviceBlob + `<Blob><Name>web/2026/11/20/1500/000002.log</Name><Properties><Last-Modified>Fri, 20 Nov 2026 15:05:00 GMT</Last-Modified><Etag>0x8DE2B1F2C3D4E60</Etag><Content-Length>0</Content-Length></Properties><OrMetadata /></Blob></Blobs><NextMarker /></EnumerationResults>`
	serviceBlob = `<Blob><Name>web/2026/11/20/1500/000001.log</Name><Properties><Creation-Time>Fri, 20 Nov 2026 15:04:05 GMT</Creation-Time><Last-Modified>Fri, 20 Nov 2026 15:04:05 GMT</Last-Modified><Etag>0x8DE2B1F2C3D4E5F</Etag><Content-Length>65813</Content-Length><Content-Type>application/x-ndjson</Content-Type><Content-Encoding>zstd</Content-Encoding><Content-Language /><Content-CRC64 /><Content-MD5>1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5><Cache-Control /><Content-Disposition /><BlobType>BlockBlob</BlobType><AccessTier>Hot</AccessTier><AccessTierInferred>true</AccessTierInferred><LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState><ServerEncrypted>true</ServerEncrypted></Properties><Metadata><batch>0193478c5a5b7c3d9e8f001122334455</batch><crc>0a1b2c3d</crc><filters>1.60213.4096.12</filters><firsttimestamp>2026-11-20T15:00:00.000000001Z</firsttimestamp><format>1</format><lasttimestamp>2026-11-20T15:03:59.999999999Z</lasttimestamp><levels>0.0.120.800.60.20.0</levels><rawbytes>262144</rawbytes><records>1000</records></Metadata><OrMetadata /></Blob>`
	azuritePage = `<?xml version="1.0" encoding="UTF-8" standalone="yes"?><EnumerationResults ServiceEndpoint="http://127.0.0.1:44477/account0" ContainerName="cvojp6qnvbcli"><Prefix/><Marker/><MaxResults>5000</MaxResults><Delimiter>/</Delimiter><Blobs><BlobPrefix><Name>web/</Name></BlobPrefix><BlobPrefix><Name>mail/</Name></BlobPrefix></Blobs><NextMarker/></EnumerationResults>`
)

// canned returns a store with a service that answers with these pages, and then with an error.
func canned(t testing.TB, pages ...string) *azure.Store {
	t.Helper()
	n := 0
	s, err := azure.Open("acct/logs", azure.Options{
		Getenv: env2("AZURE_STORAGE_SAS_TOKEN", "sv=1&sig=s"),
		Client: once(roundTripper(func(r *http.Request) (*http.Response, error) {
			if n == len(pages) {
				return nil, errors.New("one request too many")
			}
			n++
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/xml"}},
				ContentLength: int64(len(pages[n-1])), Body: io.NopCloser(strings.NewReader(pages[n-1])), Request: r}, nil
		})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// gather collects a list up to its error.
func gather[T any](items iter.Seq2[T, error]) (list []T, failed error) {
	for item, err := range items {
		if err != nil {
			return list, err
		}
		list = append(list, item)
	}
	return list, nil
}

func TestListOfService(t *testing.T) {
	first := strings.Replace(servicePage, "<NextMarker />", "<NextMarker>2!96!a&amp;b</NextMarker>", 1)
	blobs, err := gather(canned(t, first, strings.ReplaceAll(servicePage, "00000", "00001")).List(t.Context(), "web/", ""))
	if err != nil || len(blobs) != 4 {
		t.Fatalf("%v, %v", blobs, err)
	}
	want := storage.Blob{Key: "web/2026/11/20/1500/000001.log", Size: 65813, Version: "0x8DE2B1F2C3D4E5F", Created: time.Date(2026, 11, 20, 15, 4, 5, 0, time.UTC),
		Attrs: storage.Attrs{ContentType: "application/x-ndjson", ContentEncoding: "zstd", Metadata: map[string]string{
			"batch": "0193478c5a5b7c3d9e8f001122334455", "crc": "0a1b2c3d", "filters": "1.60213.4096.12", "format": "1",
			"firsttimestamp": "2026-11-20T15:00:00.000000001Z", "lasttimestamp": "2026-11-20T15:03:59.999999999Z",
			"levels": "0.0.120.800.60.20.0", "rawbytes": "262144", "records": "1000"}}}
	if !reflect.DeepEqual(blobs[0], want) {
		t.Errorf("%+v\nwant\n%+v", blobs[0], want)
	}
	if b := blobs[1]; b.Key != "web/2026/11/20/1500/000002.log" || b.Size != 0 || b.Metadata != nil || b.Created.Minute() != 5 {
		t.Errorf("%+v", b)
	}
	if dirs, err := gather(canned(t, azuritePage).Dirs(t.Context(), "")); err != nil || strings.Join(dirs, " ") != "mail web" {
		t.Errorf("%q, %v", dirs, err)
	}
}

// Names come out in all forms that XML and the service have for them.
func TestListNames(t *testing.T) {
	for text, want := range map[string]string{
		`<Name>web/a &amp;&lt;&gt;&quot;&apos; é</Name>`:          `web/a &<>"' é`,
		`<Name>web/&#97;&#x62;</Name>`:                            `web/ab`,
		`<Name><![CDATA[web/<a>]]></Name>`:                        `web/<a>`,
		`<Name>web/<!-- a comment -->1</Name>`:                    `web/1`,
		`<Name Encoded="true">web%2Fa%EF%BF%BEb%20+</Name>`:       "web/a\uFFFEb +",
		`<Name Encoded="false">web/%41</Name>`:                    "web/%41",
		"<New at='1'><Name>no</Name></New>\r\n<Name>web/1</Name>": "web/1",
		`<Name>web/1</Name ><?what?>`:                             "web/1",
	} {
		blob := strings.Replace(serviceBlob, "<Name>web/2026/11/20/1500/000001.log</Name>", text, 1)
		blobs, err := gather(canned(t, strings.NewReplacer(serviceBlob, blob, "web/2026", "x").Replace(servicePage)).List(t.Context(), "", ""))
		if err != nil || len(blobs) == 0 || blobs[0].Key != want || blobs[0].Size != 65813 || blobs[0].Metadata["records"] != "1000" {
			t.Errorf("%s: %+v, %v", text, blobs, err)
		}
	}
}

// A list that breaks off, or is none, is an error and not a short list.
func TestListMalformed(t *testing.T) {
	pages := []string{"", "<html></html>", `<?xml version="1.0" encoding="utf-8"?><EnumerationResults/>`,
		strings.Replace(servicePage, "</Blobs>", "", 1), strings.Replace(servicePage, "65813", "much", 1), strings.Replace(servicePage, "web/2026", "web\x00", 1)}
	for n := range len(servicePage) {
		pages = append(pages, servicePage[:n])
	}
	for _, page := range pages {
		if _, err := gather(canned(t, page).List(t.Context(), "", "")); err == nil {
			t.Errorf("no error: %s", page)
		}
		if _, err := gather(canned(t, page).Dirs(t.Context(), "")); err == nil && strings.Count(page, "much") == 0 {
			t.Errorf("no error of Dirs: %s", page)
		}
	}
}

// encodingXML is how encoding/xml reads a page.
type encodingXML struct {
	XMLName xml.Name `xml:"EnumerationResults"`
	Blobs   *struct {
		Blob []struct {
			Name       encodedName
			Properties struct {
				LastModified    rfc1123 `xml:"Last-Modified"`
				Etag            string
				ContentLength   int64  `xml:"Content-Length"`
				ContentType     string `xml:"Content-Type"`
				ContentEncoding string `xml:"Content-Encoding"`
			}
			Metadata metadata
		}
		BlobPrefix []struct{ Name encodedName }
	}
	NextMarker string
}

type encodedName string

func (n *encodedName) UnmarshalXML(d *xml.Decoder, of xml.StartElement) error {
	var name struct {
		Encoded bool   `xml:",attr"`
		Text    string `xml:",chardata"`
	}
	err := d.DecodeElement(&name, &of)
	if *n = encodedName(name.Text); name.Encoded && err == nil {
		var decoded string
		decoded, err = url.PathUnescape(name.Text)
		*n = encodedName(decoded)
	}
	return err
}

type rfc1123 struct{ time.Time }

func (t *rfc1123) UnmarshalText(text []byte) (err error) {
	if t.Time = (time.Time{}); len(text) > 0 {
		t.Time, err = time.Parse(time.RFC1123, string(text))
	}
	return err
}

type metadata map[string]string

func (m *metadata) UnmarshalXML(d *xml.Decoder, of xml.StartElement) error {
	var each struct {
		Elements []struct {
			XMLName xml.Name
			Text    string `xml:",chardata"`
		} `xml:",any"`
	}
	err := d.DecodeElement(&each, &of)
	for _, e := range each.Elements {
		if *m == nil {
			*m = metadata{}
		}
		(*m)[strings.ToLower(e.XMLName.Local)] = e.Text
	}
	return err
}

// FuzzScanPage compares with encoding/xml: encoding/xml takes each page that the scanner takes,
// and finds the same.
func FuzzScanPage(f *testing.F) {
	const head, tail = `<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>`, `</Blobs></EnumerationResults>`
	for _, page := range []string{
		azuritePage,
		head + tail,
		head + `<Blob><Name Encoded="true">a%20b</Name><Properties><Last-Modified>Fri, 20 Nov 2026 15:04:05 GMT</Last-Modified></Properties></Blob>` + tail,
		head + `<Blob><Name>a&amp;b</Name><Properties><Etag>"1"</Etag><Content-Length>1</Content-Length></Properties></Blob>` + tail,
		head + `<Blob><Name>a</Name><Metadata><A>b</A></Metadata><Metadata><a>&lt;</a><c/></Metadata></Blob>` + tail,
		head + `<Blob><New a="1" b="2"><x>y</x>z</New><Properties><Content-Type>t</Content-Type><Content-Encoding>e</Content-Encoding></Properties></Blob>` + tail,
		head + `</Blobs><NextMarker>m&apos;</NextMarker></EnumerationResults>`,
	} {
		if _, _, _, ok := azure.ScanPage([]byte(page)); !ok {
			f.Errorf("left to the SDK: %s", page)
		}
		f.Add([]byte(page))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		blobs, dirs, next, ok := azure.ScanPage(body)
		if !ok {
			return
		}
		var want encodingXML
		if err := xml.Unmarshal(body, &want); err != nil || want.Blobs == nil || next != want.NextMarker ||
			len(blobs) != len(want.Blobs.Blob) || len(dirs) != len(want.Blobs.BlobPrefix) {
			t.Fatalf("%v, %v, %q; encoding/xml: %v, %+v", blobs, dirs, next, err, want)
		}
		for i, d := range want.Blobs.BlobPrefix {
			if dirs[i] != string(d.Name) {
				t.Errorf("%q, want %q", dirs[i], d.Name)
			}
		}
		for i, w := range want.Blobs.Blob {
			g, p := blobs[i], w.Properties
			if g.Key != string(w.Name) || g.Size != p.ContentLength || !g.Created.Equal(p.LastModified.Time) || g.Version != strings.Trim(p.Etag, `"`) ||
				g.ContentType != p.ContentType || g.ContentEncoding != p.ContentEncoding || !maps.Equal(g.Metadata, w.Metadata) {
				t.Errorf("%+v\nwant\n%+v", g, w)
			}
		}
	})
}

// manyBlobs is a page of n blobs and one more.
func manyBlobs(n int) string {
	var all strings.Builder
	for i := range n {
		all.WriteString(strings.Replace(serviceBlob, "/000001", fmt.Sprintf("/%06d", i+1), 1))
	}
	return strings.NewReplacer(serviceBlob, all.String(), "/000002", "/999999").Replace(servicePage)
}

// A list costs a few allocations for each blob. encoding/xml makes hundreds.
func TestListAllocations(t *testing.T) {
	const blobs = 500
	page := manyBlobs(blobs)
	got := testing.AllocsPerRun(5, func() {
		if list, err := gather(canned(t, page).List(t.Context(), "", "")); err != nil || len(list) != blobs+1 {
			t.Fatalf("%d blobs, %v", len(list), err)
		}
	})
	if got > 25*blobs {
		t.Errorf("%.0f allocations for %d blobs", got, blobs)
	}
}

// BenchmarkList measures a list of 1,100 blobs without the network.
func BenchmarkList(b *testing.B) {
	page := manyBlobs(1100)
	b.SetBytes(int64(len(page)))
	b.ReportAllocs()
	for b.Loop() {
		if list, err := gather(canned(b, page).List(b.Context(), "", "")); err != nil || len(list) != 1101 {
			b.Fatalf("%d blobs, %v", len(list), err)
		}
	}
}

// Tiers in which reading costs more are listed, however their names are written.
func TestListedTiers(t *testing.T) {
	for name, want := range map[string]string{"Hot": "", "Premium": "", "Cool": "cool", "cold": "cold", "ARCHIVE": storage.Archive} {
		page := strings.Replace(servicePage, "<AccessTier>Hot<", "<AccessTier>"+name+"<", 1)
		blobs, err := gather(canned(t, page).List(t.Context(), "", ""))
		if err != nil || len(blobs) != 2 || blobs[0].Tier != want || blobs[1].Tier != "" {
			t.Errorf("%s: %+v, %v", name, blobs, err)
		}
	}
}
