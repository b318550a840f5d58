// Package memory has no allocator.
package memory

// DefaultAllocator is none.
const DefaultAllocator = 0
