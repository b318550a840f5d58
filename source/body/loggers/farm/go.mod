// A module of its own, so that no build, check or test of the product reads the loggers.
module farm

go 1.26.1

require golang.org/x/tools v0.52.0
