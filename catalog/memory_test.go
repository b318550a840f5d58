package catalog_test

import (
	"fmt"
	"testing"

	"blobtail/blobfmt"
	"blobtail/catalog"
	"blobtail/catalog/horizon"
	"blobtail/storage/mem"
)

// Listings with a memory are those without one, also after another object took the name of a blob:
// one with other metadata, with damaged ones, or with none. A small memory changes nothing either.
func TestMemory(t *testing.T) {
	for _, most := range []int64{1 << 20, 2000, 1, 0} {
		memory := catalog.NewMemory(most)
		sound := meta(1, noon, noon.Add(1), 10, 0).Map()
		other := meta(2, noon, noon.Add(2), 11, 1).Map()
		damaged := meta(1, noon, noon.Add(1), 10, 0).Map()
		damaged["records"] = "0"
		newer := meta(1, noon, noon.Add(1), 10, 0).Map()
		newer["format"] = "3"
		for step, stored := range []map[string]string{sound, sound, other, damaged, sound, newer, nil, sound} {
			s := mem.New(mem.Options{})
			put(t, s, blobfmt.Name{Service: "web", Period: noon, Number: 1}.String(), stored)
			for n := range 5 {
				blob(t, s, "web", noon, n+2)
			}
			for again := range 2 {
				texts := [2]string{}
				for i := range texts {
					v := catalog.NewView(s, []string{"web"}, horizon.Checked{})
					if i == 1 {
						v.Remember(memory)
					}
					for e, err := range v.Blobs(t.Context(), "web", catalog.Range{}) {
						texts[i] += fmt.Sprintf("%+v %v\n", e, err)
					}
				}
				if texts[0] != texts[1] || texts[0] == "" {
					t.Errorf("%d bytes, step %d.%d:\n%s\nwant\n%s", most, step, again, texts[1], texts[0])
				}
			}
		}
	}
}
