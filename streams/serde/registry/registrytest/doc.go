// Package registrytest is a Schema Registry for tests: a server in the process that
// keeps to the HTTP interface of Confluent's, as far as serializers use it, with
// its status codes, error codes and messages.
//
// It holds schemas by number and by subject and version, gives equal schemas the
// same number under all subjects, and refuses a schema that a subject's level of
// compatibility does not allow. What is compatible is known for Avro, by Avro's rules of resolution; of
// the other kinds it takes everything, and refuses what a test tells it to
// ([Registry.Refuse]).
//
// It can ask for a user and password, answer with errors ([Registry.Fail]) and count
// requests ([Registry.Requests]).
package registrytest
