package serde_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/millrace/millrace/streams"
	"github.com/millrace/millrace/streams/serde"
	"github.com/millrace/millrace/streams/serde/avro"
	"github.com/millrace/millrace/streams/serde/jsonschema"
	_ "github.com/millrace/millrace/streams/serde/protobuf"
	"github.com/millrace/millrace/streams/serde/registry"
	"github.com/millrace/millrace/streams/streamstest"
)

type Temperature float64

// celsius writes a temperature as a text of one decimal: a serde of one's own.
type celsius struct{}

func (celsius) Append(dst []byte, t Temperature) ([]byte, error) {
	return strconv.AppendFloat(dst, float64(t), 'f', 1, 64), nil
}

func (celsius) Decode(b []byte) (Temperature, error) {
	t, err := strconv.ParseFloat(string(b), 64)
	return Temperature(t), err
}

// A serde of one's own is two methods.
func ExampleSerde_own() {
	app := streams.New("weather")
	app.RegisterSerde(celsius{})
	app.Stream[string, Temperature]("readings").
		Filter(func(t Temperature) bool { return t > 30 }).
		To("hot")

	d := streamstest.New(nil, app)
	readings := d.In[string, Temperature]("readings")
	readings.Send("roof", 31.25)
	readings.Send("cellar", 12)
	for _, r := range d.Topic("hot", 0) {
		fmt.Printf("%s %s\n", r.Key, r.Value)
	}
	// Output: roof 31.2
}

type Purchase struct {
	User  string `avro:"user" json:"user"`
	Cents int64  `avro:"cents" json:"cents"`
}

const purchaseSchema = `{"type": "record", "name": "Purchase", "namespace": "shop", "fields": [
	{"name": "user", "type": "string"},
	{"name": "cents", "type": "long"}]}`

// purchases reads Avro with a registry and writes JSON that a schema checks.
func purchases(password string) (*streams.App, error) {
	client, err := registry.Open(registry.Config{
		URLs: []string{"https://registry:8081"},
		User: "shop", Password: password,
	})
	if err != nil {
		return nil, err
	}
	app := streams.New("purchases")
	app.RegisterSerde(registry.Of(client, avro.New[Purchase](purchaseSchema), registry.AutoRegister()))
	checked := jsonschema.New[Purchase](`{"type": "object", "properties": {"cents": {"minimum": 0}}}`)
	app.Stream[string, Purchase]("purchases").To("purchases-json", streams.ValSerde(checked))
	return app, nil
}

// Types whose serde has a mistake, and types without one, are one error.
func ExampleChecked() {
	app := streams.New("shop")
	app.RegisterSerde(avro.New[Purchase](`{"type": "record"}`))
	app.Stream[string, Purchase]("purchases").To("out")
	app.Stream[string, func()]("callbacks").To("called")
	_, err := app.Topology()
	fmt.Println(err)
	// Output:
	// application shop: node purchases, value of type serde_test.Purchase: avro: schema: avro: non-empty name key required
	// node callbacks, value of type func(): no serde for type func(): func() is a func, which JSON cannot say
}

// An old record read by a new type, without a registry.
func ExampleSerde_evolution() {
	type Order struct {
		User   string `avro:"user"`
		Coupon string `avro:"coupon"`
	}
	const v1 = `{"type": "record", "name": "Order", "fields": [{"name": "user", "type": "string"}]}`
	const v2 = `{"type": "record", "name": "Order", "fields": [
		{"name": "user", "type": "string"},
		{"name": "coupon", "type": "string", "default": "none"}]}`

	app := streams.New("orders")
	app.RegisterSerde(avro.New[Order](v2, avro.Since(v1)))
	app.Stream[string, Order]("orders").MapValues(func(o Order) string { return o.Coupon }).To("coupons")

	d := streamstest.New(nil, app)
	old := avro.New[map[string]any](v1, avro.Fingerprint())
	d.In[string, map[string]any]("orders").Values(old).At(time.Unix(0, 0), "o1", map[string]any{"user": "ann"})
	for _, r := range d.Out[string, string]("coupons").Records() {
		fmt.Println(r.Key, r.Value)
	}
	// Output: o1 none
}

var (
	_                          = purchases // needs a registry
	_ serde.Serde[Temperature] = celsius{}
)
