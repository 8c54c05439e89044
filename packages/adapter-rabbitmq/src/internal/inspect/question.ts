/**
 * Reads the arguments of a queue by declarations that the server must refuse, because their queue type does not exist. For an
 * existing queue, the refusal names one different argument with its value, and nothing changes. A missing queue is not created.
 * Tested on 3.10.8 and 4.3.6; neither reports the delivery limit or arguments set by policies.
 * https://www.rabbitmq.com/docs/queues#property-equivalence
 */
import type { BrokerError } from "@requeue/core/port"
import * as Effect from "effect/Effect"
import * as RabbitMqQueue from "../../RabbitMqQueue.ts"
import type { Declarer } from "../declare/declare.ts"
import { parse, type Told } from "../declare/refusal.ts"

/** No queue has this type. */
const noType = "requeue-asks"

/** More arguments than a queue can have. */
const limit = 24

type Declared = Readonly<Record<string, string | number | boolean>>

/** The type in the last refusal; a queue without the argument is classic. */
const typeOf = ({ value }: Told): RabbitMqQueue.Type =>
  value === undefined ? "classic" : value === "quorum" || value === "classic" || value === "stream" ? value : "unknown"

/**
 * Reads an existing queue; `undefined` if the server does not report it, as for a user who may not declare. Fails with
 * `QueueMissing` if the queue was deleted.
 */
export const ask = (
  { onChannel }: Pick<Declarer, "onChannel">,
  queue: string
): Effect.Effect<RabbitMqQueue.RabbitMqQueue | undefined, BrokerError.BrokerError> =>
  Effect.gen(function* () {
    const known: Record<string, string | number | boolean> = {}
    /** Properties outside the arguments, such as `durable`. */
    const properties: Record<string, boolean> = { durable: true, auto_delete: false }
    const declare = (args: Declared) =>
      onChannel("inspect", queue, (channel) =>
        channel.assertQueue(queue, {
          durable: properties["durable"] === true,
          autoDelete: properties["auto_delete"] === true,
          arguments: args
        })
      )
    for (let asked = 0; asked < limit; asked++) {
      const refused = yield* Effect.result(declare({ ...known, "x-queue-type": noType }))
      // The server never accepts this. If it did, nothing would be known.
      if (refused._tag === "Success") return undefined
      const { detail, reason } = refused.failure
      if (reason !== "QueueMismatch" && reason !== "AccessRefused") return yield* refused.failure
      const told = reason === "QueueMismatch" ? parse(detail) : undefined
      if (told === undefined) return undefined
      if (told.name === "x-queue-type") return RabbitMqQueue.refused(queue, typeOf(told), known)
      if (told.name in properties) properties[told.name] = !properties[told.name]
      else if (told.value === undefined || told.name in known) return undefined
      else known[told.name] = told.value
    }
    return undefined
  })
