/** Exchanges, queues and bindings as data. */
import type { Settings } from "../../RabbitMqOptions.ts"
import * as Names from "../names.ts"

export type Arguments = Readonly<Record<string, unknown>>

/** How much of a queue is ours: declared, only looked at, or left alone altogether. */
export type Assert = "declare" | "passive" | "never"

export type Object =
  | {
      readonly _tag: "Exchange"
      readonly name: string
      readonly type: "direct" | "fanout" | "headers" | "topic"
      readonly arguments: Arguments
      readonly assert: Assert
    }
  | { readonly _tag: "Queue"; readonly name: string; readonly arguments: Arguments; readonly assert: Assert }
  | {
      readonly _tag: "Binding"
      readonly source: string
      readonly queue: string
      readonly key: string
      readonly arguments: Arguments
    }

export const exchange = (
  name: string,
  type: Extract<Object, { _tag: "Exchange" }>["type"],
  alternate?: string,
  assert: Assert = "declare"
): Object => ({
  _tag: "Exchange",
  name,
  type,
  arguments: alternate === undefined ? {} : { "alternate-exchange": alternate },
  assert
})

export const queue = (name: string, args: Arguments, assert: Assert = "declare"): Object => ({
  _tag: "Queue",
  name,
  arguments: args,
  assert
})

export const binding = (source: string, queue: string, key: string, args: Arguments = {}): Object => ({
  _tag: "Binding",
  source,
  queue,
  key,
  arguments: args
})

/** A durable queue whose messages leave it after a time: the same for all, so that they leave it in order. */
export const delayQueue = (
  name: string,
  { queueType }: Pick<Settings, "queueType">,
  to: { readonly ttl?: number; readonly exchange: string; readonly key?: string },
  assert: Assert = "declare"
): Object =>
  queue(
    name,
    {
      ...(queueType === "quorum"
        ? // With anything but both of these, a delayed message whose target is gone for a moment is lost.
          { "x-queue-type": "quorum", "x-dead-letter-strategy": "at-least-once", "x-overflow": "reject-publish" }
        : {}),
      ...(to.ttl === undefined ? {} : { "x-message-ttl": to.ttl }),
      "x-dead-letter-exchange": to.exchange,
      ...(to.key === undefined ? {} : { "x-dead-letter-routing-key": to.key })
    },
    assert
  )

/**
 * Where delayed messages and the broker's own dead letters go, and the queue for those that have nowhere to go: without
 * it, 32 delayed messages for a queue that was deleted would hold up all others of the same delay.
 */
export const safetyNet = (settings: Settings): ReadonlyArray<Object> => [
  exchange(Names.undelivered(settings), "fanout"),
  // Nothing is behind it, and the default limit of 4.0 and later would drop what has been looked at twenty times.
  queue(
    Names.undeliveredQueue(settings),
    settings.queueType === "quorum" ? { "x-queue-type": "quorum", "x-delivery-limit": 1_000_000 } : {}
  ),
  binding(Names.undelivered(settings), Names.undeliveredQueue(settings), ""),
  exchange(Names.deliver(settings), "direct", Names.undelivered(settings)),
  exchange(Names.dead(settings), "direct", Names.undelivered(settings))
]

/** Tells objects apart. */
export const keyOf = (object: Object): string =>
  object._tag === "Binding"
    ? JSON.stringify([object.source, object.queue, object.key, object.arguments])
    : `${object._tag} ${object.name}`

export const distinct = (objects: ReadonlyArray<Object>): ReadonlyArray<Object> => [
  ...new Map(objects.map((object) => [keyOf(object), object])).values()
]

const show = (args: Arguments): string =>
  Object.entries(args)
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`)
    .join(" ")

/** A row of the plan's table. */
export const describe = (object: Object): ReadonlyArray<string> => {
  switch (object._tag) {
    case "Exchange":
      return ["exchange", object.name, `${object.type} ${show(object.arguments)}`]
    case "Queue":
      return [
        "queue",
        object.name,
        object.assert === "declare"
          ? show(object.arguments)
          : object.assert === "passive"
            ? "must exist"
            : "not touched"
      ]
    case "Binding":
      return ["binding", `${object.source} -> ${object.queue}`, `key=${object.key} ${show(object.arguments)}`]
  }
}
