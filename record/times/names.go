package times

// month returns the number of the month that begins with three letters in lower case, and its
// name; 0 for others.
func month(letters uint32) (n int, whole string) {
	switch letters {
	case 'j'<<16 | 'a'<<8 | 'n':
		return 1, "january"
	case 'f'<<16 | 'e'<<8 | 'b':
		return 2, "february"
	case 'm'<<16 | 'a'<<8 | 'r':
		return 3, "march"
	case 'a'<<16 | 'p'<<8 | 'r':
		return 4, "april"
	case 'm'<<16 | 'a'<<8 | 'y':
		return 5, "may"
	case 'j'<<16 | 'u'<<8 | 'n':
		return 6, "june"
	case 'j'<<16 | 'u'<<8 | 'l':
		return 7, "july"
	case 'a'<<16 | 'u'<<8 | 'g':
		return 8, "august"
	case 's'<<16 | 'e'<<8 | 'p':
		return 9, "september"
	case 'o'<<16 | 'c'<<8 | 't':
		return 10, "october"
	case 'n'<<16 | 'o'<<8 | 'v':
		return 11, "november"
	case 'd'<<16 | 'e'<<8 | 'c':
		return 12, "december"
	}
	return 0, ""
}

// weekday is month for the days of the week.
func weekday(letters uint32) (n int, whole string) {
	switch letters {
	case 'm'<<16 | 'o'<<8 | 'n':
		return 1, "monday"
	case 't'<<16 | 'u'<<8 | 'e':
		return 2, "tuesday"
	case 'w'<<16 | 'e'<<8 | 'd':
		return 3, "wednesday"
	case 't'<<16 | 'h'<<8 | 'u':
		return 4, "thursday"
	case 'f'<<16 | 'r'<<8 | 'i':
		return 5, "friday"
	case 's'<<16 | 'a'<<8 | 't':
		return 6, "saturday"
	case 's'<<16 | 'u'<<8 | 'n':
		return 7, "sunday"
	}
	return 0, ""
}
