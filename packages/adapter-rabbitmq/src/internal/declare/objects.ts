/** Exchanges, queues and bindings as data. https://www.rabbitmq.com/tutorials/amqp-concepts */
import type { Settings } from "../../RabbitMqOptions.ts"
import * as Names from "../names.ts"

/** Optional arguments of an object, such as `x-queue-type`. */
export type Arguments = Readonly<Record<string, unknown>>

/** The adapter's treatment of an object: declares it, only checks that it exists (`passive`), or leaves it alone (`never`). */
export type Assert = "declare" | "passive" | "never"

/** A durable exchange. */
export interface NativeExchange {
  readonly _tag: "Exchange"
  readonly name: string
  /** `direct`, `fanout`, `headers`, `topic`, or that of a plugin. */
  readonly type: string
  readonly arguments: Arguments
  readonly assert: Assert
}

/** A durable queue. */
export interface NativeQueue {
  readonly _tag: "Queue"
  readonly name: string
  /** Whether the queue belongs to the connection that declares it and ends with it. Default: no. */
  readonly exclusive?: true
  readonly arguments: Arguments
  readonly assert: Assert
}

/** A binding of a queue to an exchange. Only the management interface can check one. */
export interface NativeBinding {
  readonly _tag: "Binding"
  /** The exchange. */
  readonly source: string
  readonly queue: string
  /** The routing key. */
  readonly key: string
  readonly arguments: Arguments
  readonly assert: Assert
}

/** Anything that a plan declares. */
export type NativeObject = NativeExchange | NativeQueue | NativeBinding

/** An exchange. Messages that it cannot route go to the exchange `alternate`; without one they are returned or lost. */
export const exchange = (
  name: string,
  type: NativeExchange["type"],
  alternate?: string,
  assert: Assert = "declare"
): NativeExchange => ({
  _tag: "Exchange",
  name,
  type,
  arguments: alternate === undefined ? {} : { "alternate-exchange": alternate },
  assert
})

/** A queue with these arguments. */
export const queue = (name: string, args: Arguments, assert: Assert = "declare"): NativeQueue => ({
  _tag: "Queue",
  name,
  arguments: args,
  assert
})

/** A binding of `queue` to the exchange `source`. */
export const binding = (
  source: string,
  queue: string,
  key: string,
  args: Arguments = {},
  assert: Assert = "declare"
): NativeBinding => ({
  _tag: "Binding",
  source,
  queue,
  key,
  arguments: args,
  assert
})

/** Objects that queues share: declared, or checked if the adapter declares nothing, because messages are published into them. */
export const shared = <O extends NativeObject>(
  objects: ReadonlyArray<O>,
  { assert }: Pick<Settings, "assert">
): ReadonlyArray<O> =>
  assert === "declare" ? objects : objects.map((object) => ({ ...object, assert: "passive" as const }))

/**
 * A queue that passes its messages on to an exchange after `ttl` milliseconds, in order. Without `ttl`, each message has its own
 * TTL. `key` replaces their routing key.
 */
export const delayQueue = (
  name: string,
  { queueType }: Pick<Settings, "queueType">,
  to: { readonly ttl?: number; readonly exchange: string; readonly key?: string },
  assert: Assert = "declare"
): NativeQueue =>
  queue(
    name,
    {
      ...(queueType === "quorum"
        ? // Without both, a delayed message is lost if its target is missing for a moment.
          { "x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish" }
        : { "x-queue-type": "classic" }),
      ...(to.ttl === undefined ? {} : { "x-message-ttl": to.ttl }),
      "x-dead-letter-exchange": to.exchange,
      ...(to.key === undefined ? {} : { "x-dead-letter-routing-key": to.key })
    },
    assert
  )

/** Whether an object is a queue that passes its messages on, as delay queues do. */
export const isDelay = (object: NativeObject): boolean =>
  object._tag === "Queue" && "x-dead-letter-exchange" in object.arguments

/** A queue that keeps its messages. It has no dead-letter target, so the default limit of 4.0 would drop messages that are browsed often. */
export const kept = (name: string, { queueType }: Pick<Settings, "queueType">): NativeQueue =>
  queue(name, { "x-queue-type": queueType, ...(queueType === "quorum" ? { "x-delivery-limit": 1_000_000 } : {}) })

/** Computes a value once for each settings, because thousands of queues may share them. */
export const once = <A>(make: (settings: Settings) => A): ((settings: Settings) => A) => {
  const made = new WeakMap<Settings, A>()
  return (settings) => {
    const known = made.get(settings) ?? make(settings)
    made.set(settings, known)
    return known
  }
}

/**
 * The exchanges for delayed messages and for the server's dead letters, and a queue for messages whose target is gone. Without
 * this queue, 32 delayed messages for a deleted queue would block all others of the same delay.
 */
export const safetyNet = once((settings) =>
  shared<NativeObject>(
    [
      exchange(Names.undelivered(settings), "fanout"),
      kept(Names.undeliveredQueue(settings), settings),
      binding(Names.undelivered(settings), Names.undeliveredQueue(settings), ""),
      exchange(Names.deliver(settings), "direct", Names.undelivered(settings)),
      exchange(Names.dead(settings), "direct", Names.undelivered(settings))
    ],
    settings
  )
)

/** A text that identifies an object. */
export const keyOf = (object: NativeObject): string =>
  object._tag === "Binding"
    ? JSON.stringify([object.source, object.queue, object.key, object.arguments])
    : `${object._tag} ${object.name}`

/** Each object once: at its first position, with its last arguments. */
export const distinct = (objects: ReadonlyArray<NativeObject>): ReadonlyArray<NativeObject> => [
  ...new Map(objects.map((object) => [keyOf(object), object])).values()
]

/** Each of these objects once, without those among `others`. */
export const without = (
  objects: ReadonlyArray<NativeObject>,
  others: ReadonlyArray<NativeObject>
): ReadonlyArray<NativeObject> => {
  const known = new Set(others.map(keyOf))
  return distinct(objects).filter((object) => !known.has(keyOf(object)))
}

/** Returns how many queues, exchanges and bindings a list has, as a text such as `2 queues, 1 exchange`. */
export const counted = (objects: ReadonlyArray<NativeObject>): string => {
  const count = (kind: NativeObject["_tag"], word: string): ReadonlyArray<string> => {
    const found = objects.filter(({ _tag }) => _tag === kind).length
    return found === 0 ? [] : [`${found} ${word}${found === 1 ? "" : "s"}`]
  }
  return [...count("Queue", "queue"), ...count("Exchange", "exchange"), ...count("Binding", "binding")].join(", ")
}

const format = (args: Arguments): string =>
  Object.entries(args)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ")

const detailsOf = ({ assert }: NativeObject, declared: string): string =>
  assert === "declare" ? declared : assert === "passive" ? "must exist" : "not touched"

/** A row of the plan's table: kind, name, details. */
export const describe = (object: NativeObject): readonly [kind: string, name: string, details: string] => {
  switch (object._tag) {
    case "Exchange":
      return ["exchange", object.name, detailsOf(object, `${object.type} ${format(object.arguments)}`)]
    case "Queue":
      return [
        "queue",
        object.name,
        detailsOf(object, `${object.exclusive ? "exclusive " : ""}${format(object.arguments)}`)
      ]
    case "Binding": {
      const details = `key=${object.key} ${format(object.arguments)}`
      return ["binding", `${object.source} -> ${object.queue}`, detailsOf(object, details)]
    }
  }
}
