module github.com/stagger-go/stagger/examples/breaker

go 1.26.0

// The example is developed with the library. A release drops this line and requires the tag.
replace github.com/stagger-go/stagger => ../..

require (
	github.com/sony/gobreaker/v2 v2.4.0
	github.com/stagger-go/stagger v0.0.0
	google.golang.org/grpc v1.85.0
	google.golang.org/protobuf v1.36.12
)

require (
	github.com/stretchr/testify v1.11.1 // indirect
	go.yaml.in/yaml/v4 v4.0.0 // indirect
	golang.org/x/net v0.62.0 // indirect
	golang.org/x/sys v0.49.0 // indirect
	golang.org/x/text v0.43.0 // indirect
	google.golang.org/genproto/googleapis/rpc v0.0.0-20261110000943-09e21b237f2c // indirect
)
