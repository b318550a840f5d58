package filter

func (b *Builder) Keys() int { return len(b.keys) }
