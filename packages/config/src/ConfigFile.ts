/**
 * The shape of a config file `requeue.config.*`, as a Schema. It does not check that names of brokers and policies exist in
 * the file.
 *
 * Its JSON Schema is published with the package as `schema.json`, for editors.
 */
import { Store } from "@requeue/core"
import { Adapter, Delay, type OptionKind } from "@requeue/core/port"
import * as Schema from "effect/Schema"
import * as Values from "./internal/values.ts"
import * as PolicyConfig from "./PolicyConfig.ts"
import * as StrictSchema from "./StrictSchema.ts"

const described = <S extends Schema.Top>(description: string, schema: S) =>
  Schema.optionalKey(schema).annotateKey({ description })

/** An adapter, which only a file that is a module can hold. */
const AdapterValue = Schema.declare(Adapter.isAdapter, {
  identifier: "AdapterValue",
  message: "must be the name of a package, or an adapter"
})

/** Whether a value is passed on to the adapter: JSON, and in a module also functions and instances of classes. */
const isOption = (value: unknown): boolean => {
  if (Array.isArray(value)) return value.every(isOption)
  return Values.isObject(value) ? Object.values(value).every(isOption) : value !== undefined
}

/** The value of an adapter's option, which the adapter checks. In a module, `undefined` may be a missing secret. */
const Option = Schema.Unknown.check(Schema.makeFilter((value) => isOption(value) || "must be a value, got undefined"))

const option = <S extends Schema.Top>(schema: S, { expected, holds }: OptionKind.OptionKind) =>
  schema.check(Schema.makeFilter((value) => holds(value) || `must be ${expected}`))

const duration = (kind: OptionKind.OptionKind) => option(PolicyConfig.Duration, kind)

/** The Schema of a broker: its URL, or an object with the URL, options of `connect`, the adapter and the adapter's own options. */
const Broker = Schema.Union([
  Schema.String,
  Schema.StructWithRest(
    Schema.Struct({
      url: Schema.String,
      adapter: described(
        "The package of the adapter, or the adapter itself. Default: that of the URL's scheme.",
        Schema.Union([Schema.String, AdapterValue]).annotate({
          message: "must be the name of a package, or an adapter"
        })
      ),
      waitForBroker: described(
        "How long connect waits for a broker that starts later, and for its store, 0 to 24 hours. Default: 30 seconds.",
        duration(Delay.kind(0, Delay.max))
      ),
      store: described(
        "The name of another broker of this file, a database: its inbox and outbox make effects of handlers happen once. Default: none.",
        Schema.String
      ),
      inboxRetention: described(
        "How long the inbox of the store remembers a message, at least 1 hour. Default: 30 days.",
        duration(Store.kinds.inboxRetention)
      ),
      storeNamespace: described(
        "Separates the inbox and outbox of brokers with the same store: 1 to 64 letters, digits, - and _. Default: none.",
        option(Schema.String, Store.kinds.storeNamespace)
      )
    }),
    [Schema.Record(Schema.String, Option)]
  )
]).annotate({ identifier: "Broker", message: "must be a URL, or an object with a url and the adapter's options" })

/** The Schema of a queue in the file. Its key is its name in the program. */
const Queue = StrictSchema.struct({
  ...PolicyConfig.consumerFields,
  name: described("The queue's name on the broker. Default: the key.", Schema.NonEmptyString),
  broker: described("The name of a broker of this file. Default: the file's broker.", Schema.String),
  codec: described("What bodies are. Default: json.", Schema.Literals(["json", "text", "bytes"])),
  delay: described("Delay of messages that are sent without one, 0 to 24 hours. Default: none.", PolicyConfig.Duration),
  retry: described(
    "The retry policy, or the name of one in policies. Default: 3 retries at once, then the dead-letter queue.",
    Schema.Union([Schema.String, PolicyConfig.RetryPolicy])
  ),
  consumerBackoff: described(
    "Slows the consumer while what its handler needs is down; true for the defaults. Default: false.",
    Schema.Union([Schema.Boolean, PolicyConfig.ConsumerBackoff])
  )
})

/** The Schema of a whole file. */
export const ConfigFile = StrictSchema.struct({
  $schema: described("For editors.", Schema.String),
  broker: described("The broker of queues that name none. Default: the only broker of the file.", Schema.String),
  brokers: Schema.Record(Schema.String, Broker).annotateKey({ description: "Brokers by name." }),
  policies: described("Retry policies by name.", Schema.Record(Schema.String, PolicyConfig.RetryPolicy)),
  queues: described("Queues by name.", Schema.Record(Schema.String, Queue))
}).annotate({ identifier: "ConfigFile", message: "must be an object with brokers, policies or queues" })

/** A config file after decoding. */
export type ConfigFile = typeof ConfigFile.Type

/**
 * A config file as people write it: a JSON value. A file that is a module may also contain adapters, and any values in
 * their options.
 */
export type Json = typeof ConfigFile.Encoded

/** Closes a JSON Schema, so editors mark keys that decoding refuses. */
const closed = (schema: object): object => {
  const copy = Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, closedValue(value)]))
  return copy["properties"] !== undefined && copy["additionalProperties"] === true
    ? { ...copy, additionalProperties: false }
    : copy
}

const closedValue = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(closedValue)
  return typeof value === "object" && value !== null ? closed(value) : value
}

/** Makes the JSON Schema of a config file. */
export const jsonSchema = (): object => {
  const { definitions, schema } = Schema.toJsonSchemaDocument(ConfigFile)
  return {
    $schema: "https://json-schema.org/draft/2020-12/schema",
    title: "Requeue configuration",
    ...closed(schema),
    // A file of JSON holds no adapter.
    $defs: { ...closed(definitions), AdapterValueEncoded: { not: {} } }
  }
}
