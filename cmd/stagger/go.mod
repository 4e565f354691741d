module github.com/stagger-go/stagger/cmd/stagger

go 1.26.0

require github.com/stagger-go/stagger v0.0.0

// The command is developed with the library. A release drops this line and requires the tag.
replace github.com/stagger-go/stagger => ../..
